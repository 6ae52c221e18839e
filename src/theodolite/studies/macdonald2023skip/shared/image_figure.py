"""Training curves of original and modified networks, a panel a rate."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {0.0: "original", 1.0: "modified"}


def draw_curves(table: Rows) -> "Figure":
    """Draw the training loss against the epoch, with one deviation shaded."""
    rates = sorted(table.levels("rate"), reverse=True)
    columns = 2 if len(rates) > 1 else 1
    lines = max(1, -(-len(rates) // columns))
    figure, panels = figures.new_figure(
        3.4 * columns, 2.7 * lines, panels=(lines, columns)
    )
    for panel in panels[len(rates) :]:
        panel.set_visible(False)
    for rate, panel in zip(rates, panels, strict=False):
        _panel(panel, table.where(rate=rate))
        panel.set_title(f"rate {rate:g}")
    return figure


def _panel(panel: "Axes", rows: Rows) -> None:
    for scale in rows.levels("added_identity"):
        mine = rows.where(added_identity=scale)
        name = NAMES.get(scale, f"{scale:g} I added")
        colour = figures.series_style(name, list(NAMES.values())).colour
        epochs = mine.values("epoch")
        panel.fill_between(
            epochs,
            mine.values("low"),
            mine.values("high"),
            color=colour,
            alpha=0.18,
            linewidth=0,
        )
        panel.plot(
            epochs,
            mine.values(),
            color=colour,
            linestyle=(0, (4, 2)) if scale else "-",
            linewidth=1.4,
            label=f"{name} ({max(mine.column('n'))})",
        )
    figures.log_axis(panel, "y")
    panel.set_xlabel("epoch")
    panel.set_ylabel("training loss")
    figures.legend(panel)
