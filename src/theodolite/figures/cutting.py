"""Panels that some series leave, at a mark."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from theodolite.figures.marks import end_mark
from theodolite.figures.overlap import colour_of, series_of
from theodolite.figures.series import SeriesStyle


def cut(
    ax: Axes, *, means: str, bottom: float | None = None, top: float | None = None
) -> None:
    """Limit a panel from above and below, and mark where series leave it.

    Limits within which all data lie change nothing.

    Args:
        ax: The panel, with all that it shows.
        means: What the mark means, for the legend.
        bottom: Least value to show.
        top: Greatest value to show.
    """
    low, high = ax.get_ylim()
    floor = low if bottom is None else max(low, bottom)
    ceiling = high if top is None else min(high, top)
    ax.set_ylim(floor, ceiling)
    for line in list(series_of(ax)):
        for x, y in _exits(line, floor, ceiling):
            style = SeriesStyle(colour_of(line), "x", "solid")
            end_mark(ax, x, y, style=style, means=means)


def _exits(line: Line2D, low: float, high: float) -> list[tuple[float, float]]:
    """Return the points within the limits that are next to one beyond them.

    Of a series that is never within them, the first point at the limit it is beyond.
    """
    points = np.asarray(line.get_xydata(), float)
    points = points[np.isfinite(points).all(axis=1)]
    inside = (points[:, 1] >= low) & (points[:, 1] <= high)
    if len(points) and not inside.any():
        x, y = points[0]
        return [(float(x), float(np.clip(y, low, high)))]
    leaves = inside[:-1] & ~inside[1:]
    enters = ~inside[:-1] & inside[1:]
    places = np.flatnonzero(leaves).tolist() + (np.flatnonzero(enters) + 1).tolist()
    return [(float(points[k, 0]), float(points[k, 1])) for k in sorted(set(places))]
