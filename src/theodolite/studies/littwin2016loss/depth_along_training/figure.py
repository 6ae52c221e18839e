"""Effective depth along training, a panel a kind of network."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NORMS = {
    "scalar": "one scale a layer",
    "batch": "batch norm",
    "none": "no norm",
}
PARTS = {"output_depth": "output", "gradient_depth": "gradient"}


def draw(table: Rows) -> "Figure":
    """Draw shares of branches taken against the step; columns are tasks."""
    tasks = sorted({(row["family"], row["task"], row["depth"]) for row in table})
    figure, panels = figures.new_figure(
        2.9 * max(len(tasks), 2), 5.4, panels=(2, max(len(tasks), 1)), share_y=True
    )
    for place, (part, name) in enumerate(PARTS.items()):
        for column, (family, task, depth) in enumerate(tasks):
            panel = panels[place * max(len(tasks), 1) + column]
            for norm, label in NORMS.items():
                rows = table.where(
                    quantity=part, family=family, task=task, depth=depth, norm=norm
                )
                if len(rows):
                    figures.band(
                        panel,
                        rows.column("step"),
                        rows.values(),
                        rows.values("spread"),
                        style=figures.series_style(norm, list(NORMS)),
                        label=label,
                    )
            figures.rule(panel, 0.5)
            panel.set_xscale("symlog", linthresh=1)
            panel.set_xlim(left=0)
            panel.set_ylim(0, 1)
            if place:
                panel.set_xlabel("step")
            else:
                panel.set_title(f"{task}, depth {depth}")
            if not column:
                panel.set_ylabel(f"share of branches, {name}")
    figures.legend(panels[max(len(tasks), 1) - 1], outside=True)
    return figure
