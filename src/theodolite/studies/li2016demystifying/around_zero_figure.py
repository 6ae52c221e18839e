"""ReLU networks against the smooth formula, from saved rows."""

import math
from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (
    ("largest", "largest eigenvalue"),
    ("condition", "condition number"),
)
# Ticks below which an axis does not tell its scale.
_FEWEST = 3


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw measured against printed, one panel a quantity."""
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, 2))
    units = measured.where(task="relu").levels("units")
    names = [str(u) for u in units]
    for panel, (quantity, title) in zip(panels, PANELS, strict=True):
        every: list[float] = []
        for u in units:
            rows = measured.where(task="relu", units=u)
            printed = rows.where(quantity=f"{quantity}_printed").values()
            found = rows.where(quantity=quantity).values()
            every += [*printed, *found]
            figures.band(
                panel,
                printed,
                found,
                style=figures.series_style(str(u), names),
                label=f"{u} unit{'s' if u > 1 else ''}",
                line=False,
            )
        low, high = min(every), max(every)
        panel.plot([low, high], [low, high], color="0.6", linewidth=0.9, zorder=1)
        ticks = _ticks(low, high)
        figures.log_axis(panel, "x", ticks=ticks)
        figures.log_axis(panel, "y", ticks=ticks)
        panel.set_title(title)
        panel.set_xlabel("Eqs 9 and 26, slope ½")
        panel.set_ylabel("measured at small weights")
    figures.legend(panels[0])
    return figure


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers within the data, as few as tell the scale."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        found = [s * 10.0**k for k in decades for s in steps]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) >= _FEWEST:
            break
    return found or [low, high]
