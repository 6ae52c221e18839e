"""Rows of computed numbers, and what is read off them with its sign."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Quantity, Read, Roads, Row, Select, known


def named(found: Mapping[str, Any], error: float, **labels: Any) -> list[Row]:
    """Return a row a quantity, with its error and the labels of all."""
    return [
        {"quantity": name, **labels, "value": float(value), "error": error}
        for name, value in found.items()
    ]


def lowest(rows: Select, *, name: str = "") -> Read:
    """Read the lowest value of all rows, with its sign and a bound for each."""
    return lambda roads: _signed(rows, roads, name or f"lowest {rows}", -1.0)


def highest(rows: Select, *, name: str = "") -> Read:
    """Read the highest value of all rows, with its sign and a bound for each."""
    return lambda roads: _signed(rows, roads, name or f"highest {rows}", 1.0)


def _signed(rows: Select, roads: Roads, name: str, sign: float) -> Quantity:
    table = rows(roads)
    if not len(table):
        return known(name, float("nan"), note="there are no such rows")
    values, errors = sign * table.values(), np.abs(table.values("error"))
    value = float(values.max())
    return known(name, sign * value, float((values + errors).max()) - value)
