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


def most_over(
    bound: Select,
    found: Select,
    by: tuple[str, ...],
    *,
    ratio: bool = False,
    least: bool = False,
    name: str = "",
) -> Read:
    """Read the largest of what is found less its bound, or over it.

    Args:
        bound: A row for each that is found.
        found: What is held against it.
        by: Labels that partners share.
        ratio: Divide instead of subtracting.
        least: Read the smallest.
        name: What it is called.
    """

    def read(roads: Roads) -> Quantity:
        told = name or f"{found} {'over' if ratio else 'less'} {bound}"
        bounds = {tuple(row.get(k) for k in by): row for row in bound(roads)}
        keys = [tuple(row.get(k) for k in by) for row in found(roads)]
        if not keys or not bounds.keys() >= set(keys):
            return known(told, float("nan"), note="rows are missing or lack a partner")
        a, da, b, db = np.array(
            [
                [row["value"], row["error"], bounds[key]["value"], bounds[key]["error"]]
                for row, key in zip(found(roads), keys, strict=True)
            ]
        ).T
        if ratio and not b.all():
            return known(told, float("nan"), note="a bound is zero")
        values = a / b if ratio else a - b
        errors = (da + abs(values) * db) / abs(b) if ratio else da + db
        sign = -1.0 if least else 1.0
        value = float((sign * values).max())
        return known(told, sign * value, float((sign * values + errors).max()) - value)

    return read


def _signed(rows: Select, roads: Roads, name: str, sign: float) -> Quantity:
    table = rows(roads)
    if not len(table):
        return known(name, float("nan"), note="there are no such rows")
    values, errors = sign * table.values(), np.abs(table.values("error"))
    value = float(values.max())
    return known(name, sign * value, float((values + errors).max()) - value)
