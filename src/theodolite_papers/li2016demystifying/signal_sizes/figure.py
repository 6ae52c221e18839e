"""Variances against depth, and responses along training, from rows of points."""

import math

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured

from ..shared.figure import draw_depths
from .config import PRESETS


def table(both: PredictedAndMeasured) -> Rows:
    """Return log variances with closed forms, and responses by epoch."""
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


compare = beside(
    ("log10 variance, {kind}, {units} units", measured("variance").log10())
)


SERIES = {
    "residual": ("shortcuts", "residual"),
    "plain": ("no shortcuts", "plain"),
    "normalised": ("shortcuts, batch norm", "batch_norm"),
}


def draw(table: Rows) -> "figures.Figure":
    """Draw variances at the start, and responses by depth."""
    figure, (left, right) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    means = "closed form, infinite width"
    for kind, (label, style) in SERIES.items():
        look = {"style": style, "label": label, "line": False}
        variances = table.where(quantity="variance", kind=kind)
        theory = table.where(quantity="closed_form", kind=kind)
        figures.row_band(left, variances, "units", error="spread", **look)
        figures.row_curve(left, theory, "units", style=style, means=means)
    left.set_title("at the start")
    left.set_xlabel("residual units")
    figures.power_axis(left, "y")
    left.set_ylabel("output variance")
    figures.legend(left)
    responses = table.where(quantity="response")
    draw_depths(right, responses, "epoch", PRESETS["paper"].depths)
    right.set_title("along training")
    right.locator_params(axis="x", integer=True)
    right.set_xlabel("epoch")
    right.set_ylabel("mean response of a branch")
    figures.legend(right)
    return figure
