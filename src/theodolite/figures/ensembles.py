"""Path ensembles as pictures: energy by length, and single paths of few blocks."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from theodolite.core import ConfigError, Rows
from theodolite.figures.axes import legend
from theodolite.figures.kinds import kind_style
from theodolite.figures.marks import band, curve, rule
from theodolite.figures.series import series_style
from theodolite.figures.style import GRID, INK, PAPER, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = ("output", "gradient")
# Paths with less of the energy than this are not told from the page.
_FAINTEST = 1e-4


@house_style()
def draw_ensemble(rows: Rows, *, title: str | None = None) -> "Figure":
    """Draw the share of energy by path length, with the fitted law.

    Args:
        rows: Of one reading of a path ensemble.
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
        band(
            panel,
            mine.column("length"),
            mine.values(),
            mine.values("error"),
            style=style,
            label=part,
            kind="bars",
            line=False,
        )
        law = rows.where(quantity="law", part=part)
        beta = rows.value(quantity="beta", part=part)
        told = rf"law, $\beta$ = {beta:.3g}"
        curve(panel, law.column("length"), law.values(), style=style, label=told)
        rule(panel, rows.value(quantity="effective_depth", part=part), along="y")
    panel.set_xlabel("path length")
    panel.set_ylabel("share of energy")
    panel.set_ylim(bottom=0)
    if title:
        panel.set_title(title)
    legend(panel)
    return figure


@house_style()
def draw_unravelled(rows: Rows, *, title: str | None = None) -> "Figure":
    """Draw every path through few blocks, as wide as its share of energy.

    Args:
        rows: Of one reading of single paths.
        title: Above the panel.

    Returns:
        A line a path, the shortest on top, with a box for each branch that it takes.
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
        color=INK if seen else GRID,
        markerfacecolor=PAPER,
        label="_decoration",
        zorder=3,
    )
    told = f"{100 * share:.1f} %" if share >= 5e-4 else "< 0.1 %"
    panel.text(len(name) + 0.35, level, told, va="center", fontsize=8)
