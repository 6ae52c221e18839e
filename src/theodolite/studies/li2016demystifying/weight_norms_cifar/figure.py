"""Figure 2 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(table: Rows) -> "Figure":
    """Draw mean norms against epochs, by depth."""
    figure, (panel,) = figures.new_figure(5.6, 3.6)
    norms = table.where(quantity="norm")
    names = [str(depth) for depth in norms.levels("depth")]
    for name in names:
        mine = norms.where(depth=int(name))
        figures.band(
            panel,
            mine.column("epoch"),
            mine.values(),
            mine.values("spread"),
            style=figures.series_style(name, names),
            label=f"depth {name}",
        )
    for fall in table.where(quantity="fall"):
        figures.rule(panel, fall["epoch"], along="y")
    panel.locator_params(axis="x", integer=True)
    panel.set_xlabel("epoch")
    panel.set_ylabel(r"mean $\Vert W\Vert_F$")
    figures.legend(panel, outside=True)
    return figure
