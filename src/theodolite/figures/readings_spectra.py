"""Spectra and matrices: eigenvalues, densities, diagonals, singular values."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .axes import log_axis
from .legends import legend
from .marks import reference_line
from .readings_generic import draw_line, single_style, wants_log_axis
from .style import GRID, new_figure, series_style

# Densities below this part of their peak are not drawn.
_FLOOR = 1e-4


def draw_matrix(reading: Any) -> Figure:
    """Draw a symmetric matrix as an image, zero in the middle of its colours."""
    figure, (panel,) = new_figure(4.8, 4.0)
    matrix = np.asarray(reading.matrix)
    top = float(np.max(np.abs(matrix), initial=0.0)) or 1.0
    # Logarithmic, since a few large entries would leave all others white.
    linear = max(float(np.quantile(np.abs(matrix), 0.9)), 1e-3 * top)
    norm: Normalize = SymLogNorm(linthresh=linear, vmin=-top, vmax=top)
    if linear > 0.2 * top:
        norm = Normalize(-top, top)
    image = panel.imshow(matrix, cmap="RdBu_r", norm=norm, interpolation="nearest")
    figure.colorbar(image, ax=panel, label="entry")
    panel.grid(False)
    panel.set(xlabel="column", ylabel="row")
    return figure


def draw_singular(reading: Any) -> Figure:
    """Draw singular values by position, and their distribution with its error."""
    figure, (left, right) = new_figure(6.6, 3.2, panels=(1, 2))
    values = np.asarray(reading.values)
    draw_line(left, np.arange(1, len(values) + 1), values, reading.value_error)
    if wants_log_axis(values):
        log_axis(left, "y")
    left.set(xlabel="position", ylabel="singular value")
    style, error = single_style(), np.asarray(reading.cdf_error)
    low, high = (np.clip(reading.cdf + s * error, 0, 1) for s in (-1, 1))
    right.fill_between(reading.points, low, high, color=style.colour, alpha=0.25)
    right.plot(reading.points, reading.cdf, color=style.colour, linewidth=1.4)
    right.set(xlabel="singular value", ylabel="fraction up to here")
    right.set_ylim(-0.03, 1.03)
    return figure


def draw_spectrum(reading: Any) -> Figure:
    """Draw all eigenvalues by rank, and the size below which no sign is known."""
    figure, (panel,) = new_figure(6.6, 3.4)
    values, error = reading.eigenvalues, float(reading.eigenvalue_error)
    draw_line(panel, np.arange(1, len(values) + 1), values, None)
    _zero(panel, values, error)
    panel.set(xlabel="rank", ylabel="eigenvalue")
    return figure


def draw_density(reading: Any) -> Figure:
    """Draw density and distribution function with their bands."""
    figure, (left, right) = new_figure(6.6, 3.2, panels=(1, 2))
    style = single_style()
    for panel, name in ((left, "density"), (right, "cdf")):
        x, y = reading.grid, getattr(reading, name)
        low, high = (getattr(reading, f"{name}_{end}") for end in ("low", "high"))
        floor = _FLOOR * np.nanmax(y, initial=0.0) if name == "density" else None
        if floor:
            low, high, y = (np.where(v > floor, v, np.nan) for v in (low, high, y))
            low = np.where(np.isnan(low) & np.isfinite(high), floor, low)
            panel.set_yscale("log")
        look = {"color": style.colour, "alpha": 0.25, "linewidth": 0}
        label = f"{reading.level:.0%}, at all points at once"
        panel.fill_between(x, low, high, label=label, **look)
        panel.plot(x, y, color=style.colour, linewidth=1.4)
        panel.set_xlabel("eigenvalue")
        if floor:
            panel.set_ylim(bottom=floor)
    left.set_ylabel(f"density, kernel of {reading.width:.2g}")
    right.set_ylabel("fraction up to here")
    right.set_ylim(-0.03, 1.03)
    if reading.seed is not None:  # of a dense matrix the band is a line
        legend(right)
    return figure


def draw_extremes(reading: Any) -> Figure:
    """Draw the ends of a spectrum by rank, with certified errors."""
    figure, (panel,) = new_figure(5.2, 3.4)
    names = ("largest", "smallest")
    ends = (reading.eigenvalues, reading.smallest)
    bars = (reading.errors, reading.smallest_errors)
    for name, values, errors in zip(names, ends, bars, strict=True):
        if len(values):
            rank = np.arange(1, len(values) + 1)
            style = series_style(name, names)
            draw_line(panel, rank, values, errors, style=style, label=name)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    reference_line(panel, 0.0)
    panel.set(xlabel="rank from its end", ylabel="eigenvalue")
    legend(panel)
    return figure


def draw_diagonal(reading: Any) -> Figure:
    """Draw the entries in their order and by size, with their errors."""
    figure, (left, right) = new_figure(6.6, 3.2, panels=(1, 2), share_y=True)
    values, errors = reading.diagonal, np.asarray(reading.diagonal_error)
    errors = np.broadcast_to(errors, values.shape)
    order = np.argsort(-values)
    draw_line(left, np.arange(len(values)), values, errors, line=False)
    if len(values) > 60:
        left.lines[-1].set_marker(".")
        left.lines[-1].set_linestyle("none")
    draw_line(right, np.arange(1, len(values) + 1), values[order], errors[order])
    left.set(xlabel="entry, in the order of parameters", ylabel="diagonal")
    right.set_xlabel("rank")
    for panel in (left, right):
        reference_line(panel, 0.0)
    return figure


def _zero(panel: Axes, values: np.ndarray, error: float) -> None:
    """Mark zero; make the axis logarithmic on both sides where that shows more."""
    reference_line(panel, 0.0)
    size = float(np.max(np.abs(values), initial=0.0))
    middle = float(np.median(np.abs(values))) if len(values) else 0.0
    if not (size > 0 and size > 30 * middle):
        return
    # Linear where rounding or the smallest thousandth begins.
    linear = max(min(max(middle, 1e-6 * size), 0.1 * size), error)
    linear = 10.0 ** np.ceil(np.log10(linear))
    panel.set_yscale("symlog", linthresh=linear)
    if error > 1e-3 * linear:
        panel.axhspan(-error, error, color=GRID, zorder=1, label="sign not known")
        legend(panel)
