"""Figure 9 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(table: Rows) -> "Figure":
    """Draw the error against depth, by layers a shortcut skips."""
    figure, (panel,) = figures.new_figure(5.8, 3.6)
    for length in table.levels("shortcut"):
        mine = table.where(shortcut=length)
        figures.band(
            panel,
            mine.column("place"),
            mine.values(),
            mine.values("spread"),
            style=figures.kind_style(figures.shortcut_kind(length)),
            label=f"{length}-shortcut",
            kind="bars",
        )
    if len(table):
        figures.log_axis(panel, "x", base=2, ticks=table.levels("depth"))
    panel.set_xlabel("depth (convolutions and classifier)")
    panel.set_ylabel("test error (%)")
    figures.legend(panel, outside=True)
    return figure
