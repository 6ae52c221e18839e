"""Signed ends of rows: the least and the greatest value, with their errors."""

import math

from theodolite.core import PredictedAndMeasured, Quantity, Read, Select, known


def lowest(rows: Select, *, less: Select | None = None) -> Read:
    """Read the least of all values, less one number of the other side."""
    return lambda both: _end(rows, less, both, 1)


def highest(rows: Select, *, less: Select | None = None) -> Read:
    """Read the greatest of all values, less one number of the other side."""
    return lambda both: _end(rows, less, both, -1)


def _end(
    rows: Select, less: Select | None, both: PredictedAndMeasured, sign: int
) -> Quantity:
    found = rows(both)
    name = f"{'least' if sign > 0 else 'greatest'} {rows}"
    base, lost = 0.0, 0.0
    if less is not None:
        name = f"{name} less {less}"
        (row,) = less(both)
        base, lost = float(row["value"]), float(row["error"])
    if not len(found):
        return known(name, math.nan, note="there are no such rows")
    values = sign * (found.values() - base)
    value = float(values.min())
    reach = float((values - found.values("error")).min()) - lost
    return known(name, sign * value, value - reach)
