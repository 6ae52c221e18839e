"""Figure 4 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

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
    names = list(LABELS)
    for kind in names:
        style = figures.series_style(kind, names)
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
            # Points that a prediction runs through need no line of their own.
            line=not len(theory),
        )
        if len(theory):
            figures.curve(panel, theory.column("depth"), theory.values(), style=style)
    figures.log_axis(panel, "x", base=2, ticks=table.levels("depth"))
    panel.set_xlabel("depth (weight matrices)")
    panel.set_ylabel(r"$\log_{10}\;|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    if len(table.where(quantity="closed_form")):
        # One entry for the closed forms of both shortcuts, in neither's colour.
        panel.plot([], [], "--", color="0.4", label="closed forms at zero")
    figures.legend(panel)
    return figure
