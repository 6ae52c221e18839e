"""Rows of what theory says, each with a bound on its rounding."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Row


def closed(
    found: Mapping[str, Any], rounding: float = 1e-12, **labels: Any
) -> list[Row]:
    """Return a row a quantity, its error a fraction of it."""
    return [
        {
            "quantity": name,
            **labels,
            "value": float(value),
            "error": rounding * abs(float(value)),
        }
        for name, value in found.items()
    ]
