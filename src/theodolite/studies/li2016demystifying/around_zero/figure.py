"""ReLU networks against the smooth formula, from rows of networks."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (
    ("largest", "largest eigenvalue"),
    ("condition", "condition number"),
)


def draw(table: Rows) -> "Figure":
    """Draw measured against printed, one panel a quantity."""
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, 2))
    units = table.levels("units")
    for panel, (quantity, title) in zip(panels, PANELS, strict=True):
        rows = table.where(quantity=quantity)
        for u in units:
            chosen = rows.where(units=u)
            figures.band(
                panel,
                chosen.values("printed"),
                chosen.values(),
                style=figures.ordered_style(u, units),
                label=f"{u} unit{'s' if u > 1 else ''}",
                line=False,
            )
        ends = rows.where(axis="end").values()
        panel.plot(
            ends, ends, color=figures.MUTED, linewidth=0.9, zorder=1, label="equal"
        )
        ticks = rows.where(axis="tick").column("value")
        figures.log_axis(panel, "x", ticks=ticks)
        figures.log_axis(panel, "y", ticks=ticks)
        panel.set_title(title)
        panel.set_xlabel("Eqs 9 and 26, slope ½")
        panel.set_ylabel("measured at small weights")
    figures.shared_legend(figure)
    return figure
