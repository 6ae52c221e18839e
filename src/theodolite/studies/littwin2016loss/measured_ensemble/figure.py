"""Energy by path length, of networks and by Eq 16."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"unit": "residual", "he": "strong_branch"}
LABELS = {"unit": r"$C = 1/\sqrt{n}$", "he": r"$C = \sqrt{2/n}$"}


def draw(table: Rows) -> "Figure":
    """Draw shares by length: networks as points, Eq 16 dashed."""
    figure, (panel,) = figures.new_figure(6.6, 3.6)
    for scale in LABELS:
        style = figures.kind_style(KINDS[scale])
        mine = table.where(road="measured", scale=scale)
        law = table.where(road="law", scale=scale)
        figures.band(
            panel,
            mine.column("length"),
            mine.values(),
            mine.values("spread"),
            style=style,
            label=LABELS[scale],
            kind="bars",
            line=False,
        )
        figures.curve(
            panel,
            law.column("length"),
            law.values(),
            style=style,
            means=r"Eq 16, $\beta = \rho\sqrt{n}\,C$",
        )
    panel.set_xlabel("path length $r$ (layers taken)")
    panel.set_ylabel("share of energy")
    panel.set_ylim(bottom=0)
    figures.legend(panel)
    return figure


def draw_paths(table: Rows) -> "Figure":
    """Draw the unravelled view: every path, as wide as its share of energy."""
    return figures.draw_unravelled(table)
