"""ReLU networks against the smooth formula, from rows of networks."""

import math
from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows

# Ticks below which an axis does not tell its scale.
_FEWEST = 3


def relu(both: PredictedAndMeasured) -> Rows:
    """Return measured beside printed numbers, and the ends and ticks of the axes."""
    rows: list[Row] = []
    for quantity in ("largest", "condition"):
        printed = both.predicted.where(quantity=quantity)
        found: list[Row] = [
            {**row, "printed": printed.value(trial=row["trial"])}
            for row in both.measured.where(quantity=quantity)
        ]
        ends = [row[key] for row in found for key in ("value", "printed")]
        low, high = min(ends), max(ends)
        axis = [("end", low), ("end", high)]
        axis += [("tick", tick) for tick in _ticks(low, high)]
        rows += found
        rows += [{"quantity": quantity, "axis": kind, "value": v} for kind, v in axis]
    return Rows(rows)


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


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Orders of contact beside n, and Eq 9 beside ReLU networks."""
    rows: list[Row] = []
    orders = both.measured.where(quantity="order")
    for n in orders.levels("n"):
        found = orders.where(n=n)
        rows.append(
            {
                "label": f"order of contact, n = {n}",
                "predicted": float(n),
                "measured": float(found.values().mean()),
                "error": float(found.values("error").max()),
            }
        )
    measured = both.measured.where(quantity="condition")
    deepest = measured.where(units=max(measured.levels("units")))
    for trial in deepest.levels("trial")[:3]:
        rows.append(
            {
                "label": f"cond(H), ReLU at mid, small weights, dataset {trial}",
                "predicted": both.predicted.value(quantity="condition", trial=trial),
                "measured": deepest.value(trial=trial),
                "error": deepest.only(trial=trial)["error"],
            }
        )
    return rows


if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (
    ("largest", "largest eigenvalue"),
    ("condition", "condition number"),
)


def draw(table: Rows) -> "Figure":
    """Draw measured against printed, one panel a quantity."""
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, 2))
    units = table.levels("units")
    for panel, (quantity, title) in zip(panels, PANELS, strict=True):
        rows = table.where(quantity=quantity)
        for u in units:
            chosen = rows.where(units=u)
            figures.band(
                panel,
                chosen.values("printed"),
                chosen.values(),
                style=figures.ordered_style(u, units),
                label=f"{u} unit{'s' if u > 1 else ''}",
                line=False,
            )
        ends = rows.where(axis="end").values()
        panel.plot(
            ends, ends, color=figures.MUTED, linewidth=0.9, zorder=1, label="equal"
        )
        ticks = rows.where(axis="tick").column("value")
        figures.log_axis(panel, "x", ticks=ticks)
        figures.log_axis(panel, "y", ticks=ticks)
        panel.set_title(title)
        panel.set_xlabel("Eqs 9 and 26, slope ½")
        panel.set_ylabel("measured at small weights")
    figures.shared_legend(figure)
    return figure
