"""Figure 4 from rows of points."""

import math
from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means


def table(both: PredictedAndMeasured) -> Rows:
    """Return means of the decimal logarithm by kind and depth, and closed forms."""
    found = group_means(
        both.measured.where(quantity="ratio"), ("kind", "depth"), log=True
    )
    closed = both.predicted.where(quantity="ratio")
    return found + [
        {**row, "quantity": "closed_form", "value": math.log10(row["value"])}
        for row in closed
    ]


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Closed form at zero beside the mean over networks at small weights."""
    closed = both.predicted.where(quantity="ratio")
    ratios = group_means(both.measured.where(quantity="ratio"), ("kind", "depth"))
    return [
        {
            "label": f"ratio, {row['kind'].replace('_', '-')}, depth {row['depth']}",
            "predicted": closed.value(kind=row["kind"], depth=row["depth"]),
            "measured": row["value"],
            "error": row["error"],
        }
        for row in ratios
        if row["kind"] in closed.levels("kind")
    ]


if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "xavier": "Xavier, no shortcut",
    "orthogonal": "orthogonal, no shortcut",
    "one_shortcut": "1-shortcut, small weights",
    "two_shortcut": "2-shortcut, small weights",
}


def draw(table: Rows) -> "Figure":
    """Draw the logarithm of the ratio against depth."""
    figure, (panel,) = figures.new_figure(6.6, 4.2)
    for kind in LABELS:
        style = figures.kind_style(kind)
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
            # Points that a prediction runs through need no line of their own.
            line=not len(theory),
            # 1-shortcuts are equal to these and lie over them.
            marker_size=8.0 if kind == "orthogonal" else 5.0,
        )
        if len(theory):
            figures.curve(
                panel,
                theory.column("depth"),
                theory.values(),
                style=style,
                means="closed forms at zero",
            )
    figures.log_axis(panel, "x", base=2, ticks=table.levels("depth"))
    panel.set_xlabel("depth (weight matrices)")
    figures.power_axis(panel, "y")
    panel.set_ylabel(r"$|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    figures.legend(panel)
    return figure
