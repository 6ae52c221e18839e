"""Errors, disagreements and margins of each method, task by task."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "decay": "batch norm and decay",
    "grown": "batch norm, norm grows",
    "held": "batch norm, norm held",
    "bare": "no batch norm, norm grows",
}
KINDS = {"decay": "decay", "grown": "grown", "held": "held", "bare": "no_norm"}
PANELS = {
    "held_error": "held-out error",
    "disagreement": "starts decide differently",
    "mean_margin": "mean margin",
}
APART = 0.16


def draw(table: Rows) -> "Figure":
    """Draw a panel a quantity, a place a task."""
    figure, panels = figures.new_figure(7.0, 4.2, panels=(1, len(PANELS)))
    tasks, names = table.levels("task"), list(LABELS)
    for panel, (quantity, title) in zip(panels, PANELS.items(), strict=True):
        for shift, method in enumerate(names):
            rows = table.where(quantity=quantity, method=method)
            places = [tasks.index(task) for task in rows.column("task")]
            figures.band(
                panel,
                [place + APART * (shift - 1.5) for place in places],
                rows.values(),
                rows.values("error"),
                style=figures.kind_style(KINDS[method]),
                label=LABELS[method],
                kind="bars",
                line=False,
            )
        panel.set_title(title)
        panel.set_xticks(
            range(len(tasks)), [task.replace(", ", "\n") for task in tasks]
        )
        panel.tick_params(axis="x", labelrotation=60)
    figures.log_axis(panels[2], "y")
    panels[0].set_ylim(bottom=0)
    panels[1].set_ylim(bottom=0)
    figures.shared_legend(figure)
    return figure
