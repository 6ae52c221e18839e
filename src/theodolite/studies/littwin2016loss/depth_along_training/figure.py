"""Effective depth along training, a panel a kind of network."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NORMS = {
    "scalar": "one scale a layer",
    "batch": "batch norm",
    "none": "no norm",
}
KINDS = {"scalar": "scalar_norm", "batch": "batch_norm", "none": "no_norm"}
PARTS = {"output_depth": "output", "gradient_depth": "gradient"}


def draw(table: Rows) -> "Figure":
    """Draw shares of branches taken against the step; columns are tasks."""
    tasks = sorted({(row["task"], row["depth"]) for row in table}) or [("", 0)]
    count = len(tasks)
    figure, panels = figures.new_figure(7.0, 4.4, panels=(2, count), share_y=True)
    for place, (part, name) in enumerate(PARTS.items()):
        for column, (task, depth) in enumerate(tasks):
            panel = panels[place * count + column]
            _draw_one(panel, table.where(quantity=part, task=task, depth=depth))
            if place:
                panel.set_xlabel("step")
            else:
                panel.set_title(f"{task},\ndepth {depth}")
            if not column:
                panel.set_ylabel(f"share of branches,\n{name}")
    panels[0].set_ylim(bottom=0)  # that of all, once all is drawn
    figures.shared_legend(figure)
    return figure


def _draw_one(panel: "Axes", table: Rows) -> None:
    for norm, label in NORMS.items():
        rows = table.where(norm=norm)
        if len(rows):
            figures.band(
                panel,
                rows.column("step"),
                rows.values(),
                rows.values("spread"),
                style=figures.kind_style(KINDS[norm]),
                label=label,
            )
    figures.rule(panel, 0.5)
    figures.count_axis(panel)
