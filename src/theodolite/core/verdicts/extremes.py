"""The highest and the lowest of many rows as numbers with their signs and errors.

``largest`` and ``smallest`` of ``sample`` read magnitudes.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..rows import Row
from .quantity import Quantity, known
from .sample import Read
from .selecting import PredictedAndMeasured, Select


def highest(rows: Select, *, less: Select | None = None, name: str = "") -> Read:
    """Read the highest value of all rows, with a bound that covers each.

    Args:
        rows: The rows to read.
        less: One row whose value is subtracted.
        name: Name of the number.
    """
    return lambda both: _extreme(rows, less, both, name or f"highest {rows}", 1.0)


def lowest(rows: Select, *, less: Select | None = None, name: str = "") -> Read:
    """Read the lowest value of all rows, with a bound; arguments as of ``highest``."""
    return lambda both: _extreme(rows, less, both, name or f"lowest {rows}", -1.0)


def _extreme(
    rows: Select,
    less: Select | None,
    both: PredictedAndMeasured,
    name: str,
    sign: float,
) -> Quantity:
    table = rows(both)
    base, lost = 0.0, 0.0
    if less is not None:
        name = f"{name} less {less}"
        (row,) = less(both)
        base, lost = float(row["value"]), abs(float(row["error"]))
    if not len(table):
        return known(name, math.nan, note="there are no such rows")
    values, errors = sign * (table.values() - base), np.abs(table.values("error"))
    value = float(values.max())
    bound = float((values + errors).max()) + lost - value
    return known(name, sign * value, bound if math.isfinite(bound) else math.inf)


def named_rows(
    values: Mapping[str, Any], error: float | None = None, **labels: Any
) -> list[Row]:
    """Return one row per quantity, all with the same labels.

    Args:
        values: Number by quantity; a pair of number and error where ``error`` is None.
        error: Error of all of them.
        labels: Labels of all rows.

    Example:
        >>> named_rows({"gap": 2}, 0.5, depth=3)
        [{'quantity': 'gap', 'depth': 3, 'value': 2.0, 'error': 0.5}]
        >>> named_rows({"gap": (2, 0.5)})
        [{'quantity': 'gap', 'value': 2.0, 'error': 0.5}]
    """
    pairs = {k: v if error is None else (v, error) for k, v in values.items()}
    return [
        {"quantity": name, **labels, "value": float(value), "error": bound}
        for name, (value, bound) in pairs.items()
    ]
