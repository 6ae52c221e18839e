"""Rows of numbers that no norm layer takes part in, and what is read off them."""

from typing import Any

import numpy as np

from theodolite.core import (
    ROUNDING,
    PredictedAndMeasured,
    Quantity,
    Read,
    Row,
    Select,
    above,
    known,
)

EPS = float(np.finfo(np.float64).eps)
MORE_THAN_ROUNDING = above(ROUNDING.high, source="rounding", why=ROUNDING.why)


def by_length(name: str, values: Any, error: float, **labels: Any) -> list[Row]:
    """Return a row a path length, from 1 up."""
    return [
        {"quantity": name, **labels, "length": r, "value": float(v), "error": error}
        for r, v in enumerate(values, start=1)
    ]


def growth(rows: Select, over: str, *, name: str = "") -> Read:
    """Read the slope of computed values over the decimal logarithm of a label."""

    def read(both: PredictedAndMeasured) -> Quantity:
        table = rows(both)
        told = name or f"slope of {rows} over log10 {over}"
        if len(table.levels(over)) < 3:
            return known(told, float("nan"), note=f"too few values of {over}")
        x = np.log10(table.values(over))
        lever = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        error = float(np.abs(lever) @ np.abs(table.values("error")))
        return known(told, float(lever @ table.values()), error)

    return read
