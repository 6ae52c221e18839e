"""Spectra as pictures: eigenvalues by rank, their density, ends and diagonal."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from theodolite.figures.axes import legend
from theodolite.figures.marks import rule
from theodolite.figures.readings_generic import draw_line, only_style
from theodolite.figures.series import series_style
from theodolite.figures.style import GRID, new_figure

# Densities below this part of their peak are not drawn.
_FLOOR = 1e-4


def draw_spectrum(reading: Any) -> Figure:
    """Draw all eigenvalues by rank, and the size below which no sign is known."""
    figure, (panel,) = new_figure(6.6, 3.4)
    values, error = reading.eigenvalues, float(reading.eigenvalue_error)
    draw_line(panel, np.arange(1, len(values) + 1), values, None)
    _zero(panel, values, error)
    panel.set_xlabel("rank")
    panel.set_ylabel("eigenvalue")
    return figure


def draw_density(reading: Any) -> Figure:
    """Draw density and distribution function with their bands."""
    figure, (left, right) = new_figure(6.6, 3.2, panels=(1, 2))
    style = only_style()
    for panel, name in ((left, "density"), (right, "cdf")):
        x, y = reading.grid, getattr(reading, name)
        low, high = (getattr(reading, f"{name}_{end}") for end in ("low", "high"))
        floor = _FLOOR * np.nanmax(y, initial=0.0) if name == "density" else None
        if floor:
            low, high, y = (np.where(v > floor, v, np.nan) for v in (low, high, y))
            low = np.where(np.isnan(low) & np.isfinite(high), floor, low)
            panel.set_yscale("log")
        panel.fill_between(
            x,
            low,
            high,
            color=style.colour,
            alpha=0.25,
            linewidth=0,
            label=f"{reading.level:.0%}, at all points at once",
        )
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
    given = (
        (reading.eigenvalues, reading.errors),
        (
            reading.smallest,
            reading.smallest_errors,
        ),
    )
    for name, (values, errors) in zip(names, given, strict=True):
        if len(values):
            rank = np.arange(1, len(values) + 1)
            style = series_style(name, names)
            draw_line(panel, rank, values, errors, style=style, label=name)
    _whole_ranks(panel)
    rule(panel, 0.0)
    panel.set_xlabel("rank from its end")
    panel.set_ylabel("eigenvalue")
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
    left.set_xlabel("entry, in the order of parameters")
    left.set_ylabel("diagonal")
    right.set_xlabel("rank")
    for panel in (left, right):
        rule(panel, 0.0)
    return figure


def _zero(panel: Axes, values: np.ndarray, error: float) -> None:
    """Mark zero, and make the axis logarithmic to both sides where that shows more."""
    rule(panel, 0.0)
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


def _whole_ranks(panel: Axes) -> None:
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
