"""Losses above the infimum against steps: what arrives, how fast, and what does not."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAW = "law of one layer"


def draw(table: Rows) -> "Figure":
    """Draw medians over networks, case by case."""
    figure, (panel,) = figures.new_figure(7.6, 4.4)
    names = [name for name in table.levels("case") if name != LAW]
    for name in names:
        rows = table.where(case=name)
        style = figures.series_style(name, names)
        figures.band(
            panel,
            rows.column("step"),
            rows.values(),
            rows.values("error"),
            style=style,
            label=name,
        )
    law = table.where(case=LAW)
    panel.plot(law.column("step"), law.values(), color="black", ls=":", label=LAW)
    figures.log_axis(panel, "x")
    figures.log_axis(panel, "y")
    panel.set_ylim(bottom=1e-6)
    panel.set_xlabel("steps, in units of the certified one")
    panel.set_ylabel(r"$\ell_t - \inf\ell$")
    figures.legend(panel, outside=True)
    return figure
