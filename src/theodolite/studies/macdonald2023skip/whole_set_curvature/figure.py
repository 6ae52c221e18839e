"""Curvature along training in units of the edge, a reading a line."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.whole_set_curvature.config import (
    BATCHES,
    DESCENT,
    FROZEN,
    FROZEN_BATCHES,
    RULES,
    RUNNING,
    TOGETHER,
    WHOLE,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {DESCENT: "full-batch descent", "stochastic": "stochastic descent"}
LABELS = {
    WHOLE: "whole set, its statistics",
    RUNNING: "whole set, running statistics",
    FROZEN: "whole set, its statistics constant",
    TOGETHER: "all batches, own statistics",
    FROZEN_BATCHES: "single batches, the set's statistics constant",
    BATCHES: "single batches, own statistics",
}
KINDS = {
    WHOLE: "whole_set",
    RUNNING: "running_statistics",
    FROZEN: "constant_statistics",
    FROZEN_BATCHES: "constant_statistics_batches",
    TOGETHER: "batches_together",
    BATCHES: "single_batches",
}


def draw(table: Rows) -> "Figure":
    """Draw every reading over the edge of its rule, by share of training."""
    figure, panels = figures.new_figure(7.0, 4.4, panels=(1, 2), share_y=True)
    for panel, rule in zip(panels, RULES, strict=True):
        for reading, label in LABELS.items():
            rows = table.where(rule=rule, reading=reading)
            if len(rows):
                figures.band(
                    panel,
                    rows.column("moment"),
                    rows.values(),
                    rows.values("spread"),
                    style=figures.kind_style(KINDS[reading]),
                    label=label,
                    kind="bars",
                )
        figures.rule(panel, 0.0)
        panel.set_title(TITLES[rule])
        panel.set_xlabel("share of training")
        figures.power_axis(panel, "y")
    panels[0].set_ylabel(r"$\lambda_{\max}$ over the edge")
    figures.shared_legend(figure, order=list(LABELS.values()))
    return figure
