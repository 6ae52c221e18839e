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
        3.4 * columns, 2.7 * lines, panels=(lines, columns), share_y=True
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
        style = figures.kind_style(name if name in figures.KINDS else "beside")
        epochs = mine.values("epoch")
        panel.fill_between(
            epochs,
            mine.values("low"),
            mine.values("high"),
            color=style.colour,
            alpha=0.18,
            linewidth=0,
        )
        runs = max(mine.column("n"))
        label = f"{name}, {runs} run{'s' if runs > 1 else ''}"
        figures.line(panel, epochs, mine.values(), style=style, label=label)
    figures.log_axis(panel, "y")
    panel.locator_params(axis="x", integer=True)
    panel.set_xlabel("epoch")
    panel.set_ylabel("training loss")
    figures.legend(panel)
