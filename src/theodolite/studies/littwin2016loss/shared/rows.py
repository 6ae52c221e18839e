"""Rows of numbers that no norm layer takes part in, and what is read off them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import (
    ROUNDING,
    Quantity,
    Read,
    Roads,
    Row,
    Rows,
    Select,
    above,
    known,
)

EPS = float(np.finfo(np.float64).eps)
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


def growth(rows: Select, over: str, *, name: str = "") -> Read:
    """Read the slope of computed values over the decimal logarithm of a label."""

    def read(roads: Roads) -> Quantity:
        table = rows(roads)
        told = name or f"slope of {rows} over log10 {over}"
        if len(table.levels(over)) < 3:
            return known(told, float("nan"), note=f"too few values of {over}")
        x = np.log10(table.values(over))
        lever = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        error = float(np.abs(lever) @ np.abs(table.values("error")))
        return known(told, float(lever @ table.values()), error)

    return read


def _signed(table: Rows, name: str, sign: float) -> Quantity:
    if not len(table):
        return known(name, float("nan"), note="there are no such rows")
    values, errors = sign * table.values(), np.abs(table.values("error"))
    value = float(values.max())
    return known(name, sign * value, float((values + errors).max()) - value)
