"""Rows of numbers that do not depend on norm layers, and tests on them."""

from typing import Any

import numpy as np

from theodolite.core import (
    ROUNDING,
    ByNetwork,
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
    """Return one row per path length, from 1 up."""
    return [
        {"quantity": name, **labels, "length": r, "value": float(v), "error": error}
        for r, v in enumerate(values, start=1)
    ]


def growth(rows: Select, over: str, *, name: str = "") -> Read:
    """Read the slope of computed values over the decimal logarithm of a label."""

    def read(both: PredictedAndMeasured) -> Quantity:
        table = rows(both)
        title = name or f"slope of {rows} over log10 {over}"
        if len(table.levels(over)) < 3:
            return known(title, float("nan"), note=f"too few values of {over}")
        x = np.log10(table.values(over))
        lever = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        error = float(np.abs(lever) @ np.abs(table.values("error")))
        return known(title, float(lever @ table.values()), error)

    return read


def rescaled(
    rows: ByNetwork, *, over: float = 1.0, less: float = 0.0, bound: float = 0.0
) -> ByNetwork:
    """Return ``value / over - less`` by network; ``bound`` adds to each error."""
    values = {network: value / over - less for network, value in rows.values.items()}
    errors = {network: error / over + bound for network, error in rows.errors.items()}
    return ByNetwork(values, errors)
