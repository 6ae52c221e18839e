"""Drawings of rows: neural collapse, and path ensembles."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from theodolite.core import ConfigError, Rows

from .kinds import kind_style
from .legends import legend
from .marks import band, curve, reference_line
from .style import (
    BACKGROUND,
    GRID,
    PALETTE,
    TEXT_COLOUR,
    house_style,
    new_figure,
    series_style,
)

# With more classes, no class mean has its name beside it.
_NAMED = 12


@house_style()
def draw_collapse(rows: Rows) -> Figure:
    """Draw the rows of a ``Collapse`` reading.

    Left: class means, with a disc of the size of their class, and rows of the head, in
    a plane in which a simplex is a regular polygon. Right: cosines of pairs of class
    means, beside that of a simplex.

    Args:
        rows: Result of ``Collapse.rows()`` for one reading.
    """
    means, head = (_points(rows, name) for name in ("plane", "head_plane"))
    if not len(means):
        raise ConfigError(
            "no row has the quantity 'plane', which class means are drawn from: pass "
            "the rows of a Collapse reading"
        )
    # Radii of classes, in units of the mean distance of class means.
    spread = rows.where(quantity="class_variance").values()
    apart = rows.where(quantity="class_distance").values()
    radii = np.sqrt(np.maximum(spread, 0)) / np.mean(apart)
    names = rows.where(quantity="plane", axis="x").column("class")
    figure, (left, right) = new_figure(7.0, 3.4, panels=(1, 2))
    _plane(left, means, head, radii, names)
    _cosines(right, rows, len(means))
    return figure


def _plane(
    ax: Axes, means: np.ndarray, head: np.ndarray, radii: np.ndarray, names: list
) -> None:
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
    cosines = rows.where(quantity="cosines")
    middles, shares = cosines.values("bin"), cosines.values()
    width = 2 / len(middles)
    ax.bar(
        middles,
        shares,
        width,
        color=PALETTE["sky"],
        edgecolor=TEXT_COLOUR,
        linewidth=0.3,
    )
    reference_line(ax, -1 / (classes - 1), label="simplex", along="y")
    ax.set(title="cosines of pairs", xlabel="cosine", ylabel="share of pairs")
    ax.set(xlim=(-1.02, 1.02))
    legend(ax)


def _points(rows: Rows, quantity: str) -> np.ndarray:
    columns = [rows.where(quantity=quantity, axis=axis).values() for axis in "xy"]
    return np.stack(columns, axis=1)


_PARTS = ("output", "gradient")
# A path with less of the energy is drawn as a thin line in the colour of the grid.
_FAINTEST = 1e-4


@house_style()
def draw_ensemble(rows: Rows, *, title: str | None = None) -> Figure:
    """Draw the share of energy by path length, with the fitted law.

    Args:
        rows: Rows of one reading of a path ensemble.
        title: Above the panel.

    Returns:
        Measured shares as points, laws dashed, effective depths as thin lines.
    """
    shares = rows.where(quantity="share")
    if not len(shares):
        raise ConfigError(
            "the rows hold no quantity 'share': pass PathEnsemble.rows() of one reading"
        )
    figure, (panel,) = new_figure(6.6, 3.6)
    for part in [p for p in _PARTS if p in shares.levels("part")]:
        style = series_style(part, _PARTS)
        mine = shares.where(part=part)
        points = (mine.column("length"), mine.values(), mine.values("error"))
        band(panel, *points, style=style, label=part, kind="bars", line=False)
        law = rows.where(quantity="law", part=part)
        beta = rows.value(quantity="beta", part=part)
        label = rf"law, $\beta$ = {beta:.3g}"
        curve(panel, law.column("length"), law.values(), style=style, label=label)
        reference_line(
            panel, rows.value(quantity="effective_depth", part=part), along="y"
        )
    panel.set(xlabel="path length", ylabel="share of energy")
    panel.set_ylim(bottom=0)
    if title:
        panel.set_title(title)
    legend(panel)
    return figure


@house_style()
def draw_unravelled(rows: Rows, *, title: str | None = None) -> Figure:
    """Draw every path through few blocks, as wide as its share of energy.

    Args:
        rows: Rows of one reading of single paths.
        title: Above the panel.

    Returns:
        One line per path, the shortest on top, with a box for each branch it takes.
    """
    paths = rows.where(quantity="energy")
    names = [str(name) for name in paths.column("path")]
    if not names or not all(names):
        raise ConfigError(
            "the rows hold no paths: pass UnravelledPaths.rows() of one reading"
        )
    share = paths.values() / paths.values().sum()
    order = sorted(range(len(names)), key=lambda k: (names[k].count("1"), names[k]))
    figure, (panel,) = new_figure(6.6, 1.0 + 0.22 * len(names))
    for height, place in enumerate(order):
        _path(panel, len(order) - 1 - height, names[place], float(share[place]))
    panel.set_xlim(-0.6, len(names[0]) + 1.1)
    panel.set_ylim(-0.8, len(order) - 0.2)
    panel.set_yticks([])
    panel.set_xticks([k + 0.5 for k in range(len(names[0]))])
    panel.set_xticklabels([str(k + 1) for k in range(len(names[0]))])
    panel.set_xlabel("branch")
    panel.spines["left"].set_visible(False)
    panel.grid(False)
    if title:
        panel.set_title(title)
    return figure


def _path(panel: Axes, level: float, name: str, share: float) -> None:
    """Draw one path, with the branches that it takes as boxes."""
    style = kind_style("residual")
    seen = share >= _FAINTEST
    colour = style.colour if seen else GRID
    width = 0.6 + 9.0 * float(np.sqrt(share))
    panel.plot(
        [-0.3, len(name) + 0.2],
        [level, level],
        color=colour,
        linewidth=width if seen else 0.6,
        solid_capstyle="butt",
        label="_decoration",
        zorder=2,
    )
    taken = [k + 0.5 for k, on in enumerate(name) if on == "1"]
    panel.plot(
        taken,
        [level] * len(taken),
        linestyle="none",
        marker="s",
        markersize=8.5,
        color=TEXT_COLOUR if seen else GRID,
        markerfacecolor=BACKGROUND,
        label="_decoration",
        zorder=3,
    )
    percent = f"{100 * share:.1f} %" if share >= 5e-4 else "< 0.1 %"
    panel.text(len(name) + 0.35, level, percent, va="center", fontsize=8)
