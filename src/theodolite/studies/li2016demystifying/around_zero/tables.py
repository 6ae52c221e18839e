"""ReLU networks against the smooth formula, and orders of contact beside n."""

import math

from theodolite.core import Roads, Row, Rows

# Ticks below which an axis does not tell its scale.
_FEWEST = 3


def relu(roads: Roads) -> Rows:
    """Return measured beside printed numbers, and the ends and ticks of the axes."""
    rows: list[Row] = []
    for quantity in ("largest", "condition"):
        printed = roads.predicted.where(quantity=quantity)
        found: list[Row] = [
            {**row, "printed": printed.value(trial=row["trial"])}
            for row in roads.measured.where(quantity=quantity)
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


def compare(roads: Roads) -> list[Row]:
    """Orders of contact beside n, and Eq 9 beside ReLU networks."""
    rows: list[Row] = []
    orders = roads.measured.where(quantity="order")
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
    measured = roads.measured.where(quantity="condition")
    deepest = measured.where(units=max(measured.levels("units")))
    for trial in deepest.levels("trial")[:3]:
        rows.append(
            {
                "label": f"cond(H), ReLU at mid, small weights, dataset {trial}",
                "predicted": roads.predicted.value(quantity="condition", trial=trial),
                "measured": deepest.value(trial=trial),
                "error": deepest.only(trial=trial)["error"],
            }
        )
    return rows
