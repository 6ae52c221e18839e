"""Variances against depth, and responses along training, from rows of points."""

import math
from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from .config import PRESETS


def table(both: PredictedAndMeasured) -> Rows:
    """Return variances on a logarithm with closed forms, and responses by epoch."""
    variance = both.measured.where(quantity="variance")
    foretold = [
        {**row, "quantity": "closed_form", "value": math.log10(row["value"])}
        for row in both.predicted.where(quantity="variance")
    ]
    response = both.measured.where(quantity="response", status="finished")
    return Rows(
        [
            *group_means(variance, ("kind", "units"), log=True),
            *foretold,
            *group_means(response, ("depth", "epoch")),
        ]
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Variances by theory beside means of the decimal logarithm."""
    rows: list[Row] = []
    found = group_means(
        both.measured.where(quantity="variance"), ("kind", "units"), log=True
    )
    for row in found:
        labels = {"kind": row["kind"], "units": row["units"]}
        wanted = both.predicted.value(quantity="variance", **labels)
        rows.append(
            {
                "label": f"log10 variance, {row['kind']}, {row['units']} units",
                "predicted": math.log10(wanted),
                "measured": row["value"],
                "error": row["error"],
            }
        )
    return rows


if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "residual": "shortcuts",
    "plain": "no shortcuts",
    "normalised": "shortcuts, batch norm",
}
KINDS = {"residual": "residual", "plain": "plain", "normalised": "batch_norm"}


def draw(table: Rows) -> "Figure":
    """Draw variances at the start, and responses by depth."""
    figure, (left, right) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    for kind in LABELS:
        style = figures.kind_style(KINDS[kind])
        found = table.where(quantity="variance", kind=kind)
        theory = table.where(quantity="closed_form", kind=kind)
        figures.band(
            left,
            found.column("units"),
            found.values(),
            found.values("spread"),
            style=style,
            label=LABELS[kind],
            line=False,
        )
        figures.curve(
            left,
            theory.column("units"),
            theory.values(),
            style=style,
            means="closed form, infinite width",
        )
    left.set_title("at the start")
    left.set_xlabel("residual units")
    figures.power_axis(left, "y")
    left.set_ylabel("output variance")
    figures.legend(left)
    responses = table.where(quantity="response")
    depths = sorted({*responses.levels("depth"), *PRESETS["paper"].depths})
    for depth in responses.levels("depth"):
        mine = responses.where(depth=depth)
        figures.band(
            right,
            mine.column("epoch"),
            mine.values(),
            mine.values("spread"),
            style=figures.ordered_style(depth, depths),
            label=f"depth {depth}",
        )
    right.set_title("along training")
    right.locator_params(axis="x", integer=True)
    right.set_xlabel("epoch")
    right.set_ylabel("mean response of a branch")
    figures.legend(right)
    return figure
