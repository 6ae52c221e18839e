"""Linear networks trained over depths and rates."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows
from theodolite.studies.li2016demystifying.final_losses_linear.config import RateConfig
from theodolite.studies.li2016demystifying.shared.final_losses import training


def measure(config: RateConfig, cell: Mapping[str, Any]) -> Rows:
    """Train one network at one depth over all rates and seeds."""
    return training.measure(config, cell)
