"""Figure 2 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying.weight_norms_cifar.config import PRESETS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(table: Rows) -> "Figure":
    """Draw mean norms against epochs, by depth."""
    figure, (panel,) = figures.new_figure(5.6, 3.6)
    norms = table.where(quantity="norm")
    depths = sorted({*norms.levels("depth"), *PRESETS["paper"].depths})
    for depth in norms.levels("depth"):
        mine = norms.where(depth=depth)
        figures.band(
            panel,
            mine.column("epoch"),
            mine.values(),
            mine.values("spread"),
            style=figures.ordered_style(depth, depths),
            label=f"depth {depth}",
        )
    for fall in table.where(quantity="fall"):
        figures.rule(panel, fall["epoch"], along="y")
    panel.locator_params(axis="x", integer=True)
    panel.set_xlabel("epoch")
    panel.set_ylabel(r"mean $\Vert W\Vert_F$")
    figures.legend(panel, outside=True)
    return figure
