"""Matrices and their singular values as pictures."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from theodolite.figures.axes import log_axis
from theodolite.figures.readings_generic import draw_line, only_style, spread_widely
from theodolite.figures.style import new_figure


def draw_matrix(reading: Any) -> Figure:
    """Draw a symmetric matrix as an image, zero in the middle of its colours."""
    figure, (panel,) = new_figure(4.8, 4.0)
    matrix = np.asarray(reading.matrix)
    top = float(np.max(np.abs(matrix), initial=0.0)) or 1.0
    # As pixels: entries that hold most of the size leave the others white otherwise.
    linear = max(float(np.quantile(np.abs(matrix), 0.9)), 1e-3 * top)
    image = panel.imshow(
        matrix, cmap="RdBu_r", norm=_both_sides(top, linear), interpolation="nearest"
    )
    figure.colorbar(image, ax=panel, label="entry")
    panel.grid(False)
    panel.set_xlabel("column")
    panel.set_ylabel("row")
    return figure


def draw_singular(reading: Any) -> Figure:
    """Draw singular values by position, and their distribution with its error."""
    figure, (left, right) = new_figure(6.6, 3.2, panels=(1, 2))
    values = np.asarray(reading.values)
    draw_line(left, np.arange(1, len(values) + 1), values, reading.value_error)
    if spread_widely(values):
        log_axis(left, "y")
    left.set_xlabel("position")
    left.set_ylabel("singular value")
    style, error = only_style(), np.asarray(reading.cdf_error)
    low, high = (np.clip(reading.cdf + s * error, 0, 1) for s in (-1, 1))
    right.fill_between(reading.points, low, high, color=style.colour, alpha=0.25)
    right.plot(reading.points, reading.cdf, color=style.colour, linewidth=1.4)
    right.set_xlabel("singular value")
    right.set_ylabel("fraction up to here")
    right.set_ylim(-0.03, 1.03)
    return figure


def _both_sides(top: float, linear: float) -> Any:
    from matplotlib.colors import Normalize, SymLogNorm

    if linear > 0.2 * top:
        return Normalize(-top, top)
    return SymLogNorm(linthresh=linear, vmin=-top, vmax=top)
