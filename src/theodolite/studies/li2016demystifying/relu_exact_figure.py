"""The limit at zero and the spectrum's dependence on depth, from saved rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES = {"largest": "largest $|\\lambda|$", "mean": "mean $|\\lambda|$"}


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw the approach to the limit, and bulk and extremes by depth."""
    figure, (left, right) = figures.new_figure(7.0, 3.4, panels=(1, 2))
    _limit(left, measured.where(quantity="limit_gap"))
    _depths(right, predicted)
    return figure


def _limit(panel: Any, rows: Rows) -> None:
    style = figures.series_style("found", ["found"])
    for place, trial in enumerate(rows.levels("trial")):
        chosen = rows.where(trial=trial)
        figures.band(
            panel,
            chosen.column("scale"),
            chosen.values(),
            style=style,
            label="measured, a network each" if place == 0 else None,
        )
    scale = np.array(rows.levels("scale"), dtype=float)
    top = rows.where(scale=scale[-1]).values().max()
    panel.plot(
        scale, 2 * top * (scale / scale[-1]) ** 2, color="0.5", linestyle="dashed",
        label="slope 2",
    )  # fmt: skip
    figures.log_axis(panel, "x", ticks=scale.tolist())
    figures.log_axis(panel, "y")
    panel.set_title("towards half-space moments")
    panel.set_xlabel("size of the weights, in Xavier's")
    panel.set_ylabel("distance of spectra")
    figures.legend(panel)


def _depths(panel: Any, predicted: Rows) -> None:
    units = predicted.where(quantity="mean").levels("units")
    for quantity, label in SERIES.items():
        rows = predicted.where(quantity=quantity)
        values = [rows.where(units=u).values() for u in units]
        figures.band(
            panel,
            units,
            [float(v.mean()) for v in values],
            [float(v.std(ddof=1)) for v in values],
            style=figures.series_style(quantity, list(SERIES)),
            label=label,
        )
    figures.log_axis(panel, "x", base=2, ticks=units)
    panel.set_ylim(bottom=0)
    panel.set_title("near zero: bulk and extremes")
    panel.set_xlabel("residual units $R$")
    panel.set_ylabel("magnitude of eigenvalues")
    figures.legend(panel)
