"""Linear networks trained over depths and rates."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows

from ..shared.final_losses import training
from .config import RateConfig


def measure(config: RateConfig, cell: Mapping[str, Any]) -> Rows:
    """Train one network at one depth over all rates and seeds."""
    return training.measure(config, cell)
