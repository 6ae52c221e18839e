"""Autodiff and gradient descent of linear classifiers; no theory."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows

from .config import Config
from .measure_ends import ends
from .measure_points import points
from .measure_samples import samples
from .measure_speeds import deep, speeds

PARTS = {
    "speeds": speeds,
    "ends": ends,
    "points": points,
    "samples": samples,
    "deep": deep,
}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one group of numbers."""
    return Rows(PARTS[cell["part"]](config))
