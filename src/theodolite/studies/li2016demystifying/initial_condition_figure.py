"""Figure 4 from saved rows."""

from typing import TYPE_CHECKING

import numpy as np

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


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw the logarithm of the ratio against depth."""
    figure, (panel,) = figures.new_figure(6.6, 4.2)
    names = list(LABELS)
    ratios = measured.where(quantity="ratio")
    for kind in names:
        style = figures.series_style(kind, names)
        depths = ratios.where(kind=kind).levels("depth")
        points = [_point(ratios.where(kind=kind, depth=depth)) for depth in depths]
        mean, spread, bound = (list(column) for column in zip(*points, strict=True))
        theory = predicted.where(quantity="ratio", kind=kind)
        figures.band(
            panel,
            depths,
            mean,
            spread,
            style=style,
            label=LABELS[kind],
            bound=bound,
            # Points that a prediction runs through need no line of their own.
            line=not len(theory),
        )
        if len(theory):
            figures.curve(
                panel,
                theory.column("depth"),
                np.log10(theory.values()),
                style=style,
            )
    everywhere = sorted({*ratios.levels("depth"), *predicted.levels("depth")})
    figures.log_axis(panel, "x", base=2, ticks=everywhere)
    panel.set_xlabel("depth (weight matrices)")
    panel.set_ylabel(r"$\log_{10}\;|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    if len(predicted.where(quantity="ratio")):
        # One entry for the closed forms of both shortcuts, in neither's colour.
        panel.plot([], [], "--", color="0.4", label="closed forms at zero")
    figures.legend(panel)
    return figure


def _point(rows: Rows) -> tuple[float, float, bool]:
    values = rows.values()
    values = np.log10(values[np.isfinite(values)])
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread, "rounding" in rows.column("status")
