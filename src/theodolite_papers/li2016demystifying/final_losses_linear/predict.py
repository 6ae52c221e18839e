"""The optimal loss, and the excess over it of a network that outputs zero."""

import numpy as np

from theodolite.core import Rows, named_rows
from theodolite.theory import moments

from ..shared.final_losses.config import RateConfig, inputs
from ..shared.problems import EPS


def predict(config: RateConfig) -> Rows:
    """Return the optimal loss, and the excess of the zero map and of the start."""
    data = moments(*inputs(config))
    best = data.optimal_loss()
    whole = float(np.trace(data.yy))
    identity = 0.5 * float(np.trace(data.xx - 2 * data.yx) + whole)
    numbers = {
        "optimal_loss": best,
        "zero_map_excess": whole / 2 - best,
        "start_excess": identity - best,
    }
    error = EPS * config.width * identity
    return Rows(named_rows(numbers, error))
