"""Random problems, activations and rows, for both predictions and measurements.

This module builds no network and uses no theory.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, stream

EPS = float(np.finfo(np.float64).eps)

# Activations by name of the setting; "general" has neither oddness nor unit slopes,
# and a pre-activation that is not 0 at 0, which assumption 3 allows.
SETTINGS: dict[str, dict[str, Any]] = {
    "linear": {},
    "tanh": {"pre": "tanh", "mid": "tanh", "post": "tanh"},
    "general": {"pre": "exp", "mid": "polynomial:1.5,1", "post": "polynomial:2,1"},
}


def random_data(
    trial: int, *, samples: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian inputs and targets of a trial."""
    x, y = stream(trial, "random_data").normal(size=(2, samples, width))
    return x, y


def named(
    numbers: Mapping[str, Any], errors: float | Mapping[str, float], **labels: Any
) -> list[Row]:
    """Return one row per quantity, with its error and the common labels."""
    table = errors if isinstance(errors, Mapping) else {}
    default = None if isinstance(errors, Mapping) else errors
    return [
        {
            "quantity": name,
            **labels,
            "value": float(value),
            "error": table.get(name, default),
            "norm_mode": "eval",
        }
        for name, value in numbers.items()
    ]


def entries(matrix: np.ndarray, error: float, **labels: Any) -> list[Row]:
    """Return one row per entry of a matrix, row by row."""
    return [
        row
        for (i, j), value in np.ndenumerate(matrix)
        for row in named({"entry": value}, error, **labels, row=i, column=j)
    ]


def gap(theory: np.ndarray, measured: np.ndarray, scale: float) -> float:
    """Return the largest difference of entries as a fraction of a scale."""
    return float(np.abs(theory - measured).max()) / scale


def closed(
    numbers: Mapping[str, Any], rounding: float = 1e-12, **labels: Any
) -> list[Row]:
    """Return one row per quantity; its error is ``rounding`` times its value."""
    return [
        {
            "quantity": name,
            **labels,
            "value": float(value),
            "error": rounding * abs(float(value)),
        }
        for name, value in numbers.items()
    ]
