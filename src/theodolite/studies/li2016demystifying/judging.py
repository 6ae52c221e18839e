"""Numbers that verdicts are made of: extremes of rows with their errors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite.core import Number, Rows

# Two roads in double precision meet to this fraction of the largest entry.
EXACT = 1e-10
# Why a single network decides nothing about networks.
ALONE = "one network a point has no error: run at least two seeds"


def largest(rows: Rows, quantity: str, **labels: Any) -> Number:
    """Return the largest magnitude of a quantity with its error."""
    return _number(rows.where(quantity=quantity, **labels), np.argmax)


def smallest(rows: Rows, quantity: str, **labels: Any) -> Number:
    """Return the smallest magnitude of a quantity with its error."""
    return _number(rows.where(quantity=quantity, **labels), np.argmin)


def _number(rows: Rows, choose: Callable[[np.ndarray], Any]) -> Number:
    row = rows[int(choose(np.abs(rows.values())))]
    return Number(abs(row["value"]), row["error"])
