"""The geometry of neural collapse: class means, a head and their simplex."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from theodolite.core import ConfigError, Rows
from theodolite.figures.axes import legend
from theodolite.figures.marks import rule
from theodolite.figures.style import GRID, INK, PALETTE, house_style, new_figure

# Classes that are drawn with a name each, at most.
_NAMED = 12


@house_style()
def draw_collapse(rows: Rows) -> Figure:
    """Draw the rows of a ``Collapse`` reading.

    On the left class means and rows of the head on a plane on which a simplex is a
    regular polygon, class means with a disc of the size of their class; on the right
    the cosines of pairs of class means beside that of a simplex.

    Args:
        rows: What ``Collapse.rows()`` returns, of one reading.
    """
    means, head = (_points(rows, name) for name in ("plane", "head_plane"))
    if not len(means):
        raise ConfigError(
            "no row has the quantity 'plane', which class means are drawn from: pass "
            "the rows of a Collapse reading"
        )
    names = _labels(rows)
    figure, (left, right) = new_figure(7.0, 3.4, panels=(1, 2))
    _plane(left, means, head, _radii(rows), names)
    _cosines(right, rows, len(means))
    return figure


def _plane(
    ax: Axes, means: np.ndarray, head: np.ndarray, radii: np.ndarray, names: list[Any]
) -> None:
    from matplotlib.patches import Circle

    turns = 2 * np.pi * np.arange(len(means) + 1) / len(means)
    ax.plot(np.cos(turns), np.sin(turns), color=GRID, linewidth=1.2, label="simplex")
    for (x, y), radius in zip(means, radii, strict=True):
        disc = Circle((x, y), radius, color=PALETTE["blue"], alpha=0.12, linewidth=0)
        ax.add_patch(disc)
    ax.plot(*means.T, "o", color=PALETTE["blue"], markersize=4, label="class means")
    if np.isfinite(head).all():
        ax.plot(*head.T, "x", color=PALETTE["vermilion"], markersize=5, label="head")
    if len(names) <= _NAMED:
        for name, (x, y) in zip(names, means, strict=True):
            ax.annotate(str(name), (x, y), (4, 4), textcoords="offset points")
    reach = 1.15 * max(1.0, float(np.abs(means).max()) + float(radii.max()))
    ax.set(title="class means", xlim=(-reach, reach), ylim=(-reach, reach))
    ax.set(xticks=[], yticks=[], aspect="equal")
    legend(ax, outside=False)


def _cosines(ax: Axes, rows: Rows, classes: int) -> None:
    found = rows.where(quantity="cosines")
    middles, shares = found.values("bin"), found.values()
    width = 2 / len(middles)
    ax.bar(middles, shares, width, color=PALETTE["sky"], edgecolor=INK, linewidth=0.3)
    rule(ax, -1 / (classes - 1), label="simplex", along="y")
    ax.set(title="cosines of pairs", xlabel="cosine", ylabel="share of pairs")
    ax.set(xlim=(-1.02, 1.02))
    legend(ax)


def _points(rows: Rows, quantity: str) -> np.ndarray:
    found = [rows.where(quantity=quantity, axis=axis).values() for axis in ("x", "y")]
    return np.stack(found, axis=1)


def _radii(rows: Rows) -> np.ndarray:
    """Return radii of classes, in units of the mean distance of class means."""
    spread = rows.where(quantity="class_variance").values()
    apart = rows.where(quantity="class_distance").values()
    return np.sqrt(np.maximum(spread, 0)) / np.mean(apart)


def _labels(rows: Rows) -> list[Any]:
    return rows.where(quantity="plane", axis="x").column("class")
