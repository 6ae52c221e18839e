"""Numbers that several studies read off rows: signed extremes, and constants."""

import numpy as np

from theodolite.core import (
    Quantity,
    Read,
    Region,
    Roads,
    Select,
    Test,
    every,
    inside,
    known,
)


def highest(rows: Select, *, name: str = "") -> Read:
    """Read the highest value of all rows, with its sign and a bound for each."""
    return lambda roads: _extreme(rows, roads, name or f"highest {rows}", 1.0)


def lowest(rows: Select, *, name: str = "") -> Read:
    """Read the lowest value of all rows, with its sign and a bound for each."""
    return lambda roads: _extreme(rows, roads, name or f"lowest {rows}", -1.0)


def _extreme(rows: Select, roads: Roads, name: str, sign: float) -> Quantity:
    table = rows(roads)
    if not len(table):
        return known(name, float("nan"), note="there are no such rows")
    values = sign * table.values()
    value = float(values.max())
    bound = float((values + table.values("error")).max()) - value
    return known(name, sign * value, bound if np.isfinite(bound) else np.inf)


def always(rows: Select, region: Region) -> Test:
    """Every row lies in a region, its error included."""
    return every(inside(highest(rows), region), inside(lowest(rows), region))
