"""Condition numbers by depth and the limit at zero, from rows of points."""

import math
from typing import Any

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
)

from ..shared.figure import draw_ratios


def table(both: PredictedAndMeasured) -> Rows:
    """Return log ratios by kind and depth, and distances from the limit."""
    ratios = both.measured.where(quantity="ratio")
    at_zero = both.predicted.where(quantity="ratio")
    gaps = both.measured.where(quantity="limit_gap")
    rows: list[Row] = [
        {**row, "quantity": "closed_form", "value": math.log10(row["value"])}
        for row in at_zero
    ]
    if len(gaps):
        top = max(gaps.levels("scale"))
        height = 2 * max(gaps.where(scale=top).values())
        rows += [
            {"quantity": "square", "scale": s, "value": height * (s / top) ** 2}
            for s in gaps.levels("scale")
        ]
    return group_means(ratios, ("kind", "depth"), log=True) + rows + gaps


compare = beside(("ratio, 1-shortcut {kind}, depth {depth}", measured("ratio")))


SERIES = {
    "two_shortcut": ("2-shortcut, ReLU at mid", "two_shortcut_relu"),
    "tanh": ("1-shortcut, tanh", "one_shortcut_tanh"),
    "relu_before": ("1-shortcut, ReLU before", "one_shortcut"),
    "relu_after": ("1-shortcut, ReLU after", "one_shortcut_relu_after"),
}


def draw(table: Rows) -> "figures.Figure":
    """Draw ratios against depth, and the approach to the limit."""
    figure, (left, right) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    draw_ratios(left, table, SERIES)
    left.set_title("condition by depth")
    _limit(right, table)
    return figure


def _limit(panel: Any, table: Rows) -> None:
    rows = table.where(quantity="limit_gap")
    for trial in rows.levels("trial"):
        first = trial == rows[0]["trial"]
        label = "measured, a network each" if first else None
        mine = rows.where(trial=trial)
        figures.row_band(
            panel, mine, "scale", error=None, style="measured", label=label
        )
    square = table.where(quantity="square")
    figures.row_curve(panel, square, "scale", style="beside", label="slope 2")
    figures.log_axis(panel, "x", ticks=rows.levels("scale"))
    figures.log_axis(panel, "y")
    panel.set_title("towards half-space moments")
    panel.set_xlabel("size of the weights, in Xavier's")
    panel.set_ylabel("distance of spectra")
    figures.legend(panel)
