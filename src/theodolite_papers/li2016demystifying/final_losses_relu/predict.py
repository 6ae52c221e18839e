"""The losses of the best linear map and of the zero map."""

import numpy as np

from theodolite.core import Rows, named_rows
from theodolite.theory import moments

from ..shared.final_losses.config import RateConfig, inputs
from ..shared.problems import EPS


def predict(config: RateConfig) -> Rows:
    """Return the loss of the best linear map and that of the zero map."""
    data = moments(*inputs(config))
    zero = float(np.trace(data.yy)) / 2
    numbers = {"linear_optimum": data.optimal_loss(), "zero_map_final_loss": zero}
    error = EPS * config.width * zero
    return Rows(named_rows(numbers, error))
