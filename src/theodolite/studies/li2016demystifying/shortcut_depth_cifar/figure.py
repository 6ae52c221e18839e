"""Figure 9 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(table: Rows) -> "Figure":
    """Draw the error against depth, by layers a shortcut skips."""
    figure, (panel,) = figures.new_figure(5.8, 3.6)
    names = [str(n) for n in table.levels("shortcut")]
    for name in names:
        mine = table.where(shortcut=int(name))
        figures.band(
            panel,
            mine.column("place"),
            mine.values(),
            mine.values("spread"),
            style=figures.series_style(name, names),
            label=f"shortcut {name}",
            kind="bars",
        )
    if len(table):
        figures.log_axis(panel, "x", base=2, ticks=table.levels("depth"))
    panel.set_xlabel("depth (convolutions and classifier)")
    panel.set_ylabel("test error (%)")
    figures.legend(panel, outside=True)
    return figure
