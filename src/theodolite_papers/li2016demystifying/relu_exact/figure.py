"""Condition numbers by depth and the limit at zero, from rows of points."""

import math
from typing import TYPE_CHECKING, Any

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means


def table(both: PredictedAndMeasured) -> Rows:
    """Return ratios by kind and depth on a logarithm, and distances from the limit."""
    ratios = both.measured.where(quantity="ratio")
    found = group_means(ratios, ("kind", "depth"), log=True)
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
    return found + rows + gaps


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Closed forms at zero beside means at small weights."""
    at_zero = both.predicted.where(quantity="ratio")
    ratios = group_means(both.measured.where(quantity="ratio"), ("kind", "depth"))
    return [
        {
            "label": f"ratio, 1-shortcut {row['kind']}, depth {row['depth']}",
            "predicted": found.value(),
            "measured": row["value"],
            "error": row["error"],
        }
        for row in ratios
        if len(found := at_zero.where(kind=row["kind"], depth=row["depth"]))
    ]


if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "two_shortcut": "2-shortcut, ReLU at mid",
    "tanh": "1-shortcut, tanh",
    "relu_before": "1-shortcut, ReLU before",
    "relu_after": "1-shortcut, ReLU after",
}
KINDS = {
    "two_shortcut": "two_shortcut_relu",
    "tanh": "one_shortcut_tanh",
    "relu_before": "one_shortcut",
    "relu_after": "one_shortcut_relu_after",
}


def draw(table: Rows) -> "Figure":
    """Draw ratios against depth, and the approach to the limit."""
    figure, (left, right) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    _ratios(left, table)
    _limit(right, table)
    return figure


def _ratios(panel: Any, table: Rows) -> None:
    for kind in LABELS:
        style = figures.kind_style(KINDS[kind])
        points = table.where(quantity="ratio", kind=kind)
        theory = table.where(quantity="closed_form", kind=kind)
        figures.band(
            panel,
            points.column("depth"),
            points.values(),
            points.values("spread"),
            style=style,
            label=LABELS[kind],
            bound=points.column("open"),
            means="hollow: a lower bound, by rounding",
            line=not len(theory),
        )
        if len(theory):
            figures.curve(
                panel,
                theory.column("depth"),
                theory.values(),
                style=style,
                means="closed form at zero",
            )
    figures.log_axis(panel, "x", base=2, ticks=table.levels("depth"))
    figures.power_axis(panel, "y")
    panel.set_title("condition by depth")
    panel.set_xlabel("depth (weight matrices)")
    panel.set_ylabel(r"$|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    figures.legend(panel)


def _limit(panel: Any, table: Rows) -> None:
    rows = table.where(quantity="limit_gap")
    style = figures.kind_style("measured")
    for trial in rows.levels("trial"):
        chosen = rows.where(trial=trial)
        figures.band(
            panel,
            chosen.column("scale"),
            chosen.values(),
            style=style,
            label="measured, a network each" if trial == rows[0]["trial"] else None,
        )
    square = table.where(quantity="square")
    figures.curve(
        panel,
        square.column("scale"),
        square.values(),
        style=figures.kind_style("beside"),
        label="slope 2",
    )
    figures.log_axis(panel, "x", ticks=rows.levels("scale"))
    figures.log_axis(panel, "y")
    panel.set_title("towards half-space moments")
    panel.set_xlabel("size of the weights, in Xavier's")
    panel.set_ylabel("distance of spectra")
    figures.legend(panel)
