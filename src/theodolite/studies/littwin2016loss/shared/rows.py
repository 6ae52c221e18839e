"""Rows of numbers that no norm layer takes part in, and what is read off them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import ROUNDING, Read, Region, Row, Select, above, known

EPS = float(np.finfo(np.float64).eps)
AT_LEAST_ZERO = Region(low=0.0, low_open=False)
MORE_THAN_ROUNDING = above(ROUNDING.high, source="rounding", why=ROUNDING.why)


def named(found: Mapping[str, Any], error: float, **labels: Any) -> list[Row]:
    """Return a row a quantity, with its error and the labels of all."""
    return [
        {"quantity": name, **labels, "value": float(value), "error": error}
        for name, value in found.items()
    ]


def by_length(name: str, values: Any, error: float, **labels: Any) -> list[Row]:
    """Return a row a path length, from 1 up."""
    return [
        {"quantity": name, **labels, "length": r, "value": float(v), "error": error}
        for r, v in enumerate(values, start=1)
    ]


def lowest(rows: Select, *, name: str = "") -> Read:
    """Read the lowest value of all rows, with its sign and a bound for each."""
    return lambda roads: _signed(rows(roads), name or f"lowest {rows}", -1.0)


def highest(rows: Select, *, name: str = "") -> Read:
    """Read the highest value of all rows, with its sign and a bound for each."""
    return lambda roads: _signed(rows(roads), name or f"highest {rows}", 1.0)


def _signed(table: Any, name: str, sign: float) -> Any:
    if not len(table):
        return known(name, float("nan"), note="there are no such rows")
    values, errors = sign * table.values(), np.abs(table.values("error"))
    value = float(values.max())
    return known(name, sign * value, float((values + errors).max()) - value)
