"""Curvature in units of the edge: along training, and after it in every reading."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.whole_set_curvature.config import (
    BATCHES,
    DESCENT,
    END,
    FROZEN,
    FROZEN_BATCHES,
    RULES,
    RUNNING,
    STOCHASTIC,
    TOGETHER,
    WHOLE,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {DESCENT: "full-batch descent", STOCHASTIC: "stochastic descent"}
# From the least samples to the most, in the order of the rows.
LABELS = {
    BATCHES: "single batches,\nown statistics",
    TOGETHER: "all batches,\nown statistics",
    WHOLE: "whole set,\nits statistics",
    FROZEN_BATCHES: "single batches,\nthe set's, constant",
    FROZEN: "whole set,\nits own, constant",
    RUNNING: "whole set,\nrunning statistics",
}
# What there is one of is drawn in ink, as the whole set's curvature is.
KINDS = {BATCHES: "single_batches", WHOLE: "measured"}
EDGE = r"$\lambda_{\max}$ over the edge"


def draw_courses(table: Rows) -> "Figure":
    """Draw what batches and the whole set say, by share of training."""
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, 2), share_y=True)
    for panel, rule in zip(panels, RULES, strict=True):
        for reading, kind in KINDS.items():
            rows = table.where(rule=rule, reading=reading)
            figures.band(
                panel,
                rows.column("moment"),
                rows.values(),
                rows.values("spread"),
                style=figures.kind_style(kind),
                label=LABELS[reading].replace("\n", " "),
                kind="bars",
            )
        figures.rule(panel, 0.0)
        panel.set_title(TITLES[rule])
        panel.set_xlabel("share of training")
        figures.power_axis(panel, "y")
    panels[0].set_ylabel(EDGE)
    figures.shared_legend(figure)
    return figure


def draw_corners(table: Rows) -> "Figure":
    """Draw all readings after training, a line each."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2), share_y=True)
    for panel, rule in zip(panels, RULES, strict=True):
        rows = table.where(rule=rule, moment=END)
        places = [list(LABELS).index(row["reading"]) for row in rows]
        style = figures.kind_style("measured")
        panel.errorbar(
            rows.values(),
            places,
            xerr=rows.values("spread"),
            fmt="none",
            ecolor=style.colour,
            elinewidth=1.0,
        )
        figures.band(panel, rows.values(), places, style=style, line=False)
        figures.rule(panel, 0.0, along="y")
        panel.set_title(TITLES[rule])
        panel.set_xlabel(EDGE)
        figures.power_axis(panel, "x")
    panels[0].set_yticks(range(len(LABELS)), list(LABELS.values()))
    panels[0].set_ylim(len(LABELS) - 0.5, -0.5)
    return figure
