"""Which orders of derivative survive at zero, from rows of shares."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(table: Rows) -> "Figure":
    """Draw the share of non-zero derivatives by order, a panel a shortcut length."""
    lengths = table.levels("n")
    names = [str(n) for n in lengths]
    figure, panels = figures.new_figure(
        7.0, 2.8, panels=(1, len(lengths)), share_y=True
    )
    for panel, n in zip(panels, lengths, strict=True):
        rows = table.where(n=n)
        orders = rows.column("order")
        colour = figures.series_style(str(n), names).colour
        panel.bar(
            orders,
            rows.values("measured"),
            width=0.62,
            color=colour,
            alpha=0.55,
            label="measured",
        )
        panel.bar(
            orders,
            rows.values(),
            width=0.74,
            facecolor="none",
            edgecolor="0.25",
            linewidth=1.0,
            label="allowed by lemma 3",
        )
        panel.set_title(f"n = {n}")
        panel.set_xticks(orders)
        panel.set_xlabel("order of the derivative")
        panel.set_ylim(0, 1.35)
        panel.set_yticks([0, 0.5, 1])
        panel.legend(loc="upper left", fontsize=7.5)
    panels[0].set_ylabel("share that is not zero")
    return figure
