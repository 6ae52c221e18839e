"""Draw figure 4 from saved rows."""

import math

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured

from ..shared.figure import draw_ratios


def table(both: PredictedAndMeasured) -> Rows:
    """Return means of the decimal logarithm by kind and depth, and closed forms."""
    means = group_means(
        both.measured.where(quantity="ratio"), ("kind", "depth"), log=True
    )
    closed = both.predicted.where(quantity="ratio")
    return means + [
        {**row, "quantity": "closed_form", "value": math.log10(row["value"])}
        for row in closed
    ]


compare = beside(("ratio, {kind}, depth {depth}", measured("ratio")))


SERIES = {
    "xavier": ("Xavier, no shortcut", "xavier"),
    "orthogonal": ("orthogonal, no shortcut", "orthogonal"),
    "one_shortcut": ("1-shortcut, small weights", "one_shortcut"),
    "two_shortcut": ("2-shortcut, small weights", "two_shortcut"),
}


def draw(table: Rows) -> "figures.Figure":
    """Draw the logarithm of the ratio against depth."""
    figure, (panel,) = figures.new_figure(6.6, 4.2)
    draw_ratios(panel, table, SERIES)
    return figure
