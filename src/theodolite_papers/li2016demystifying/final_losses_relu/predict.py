"""What linear maps could reach."""

import numpy as np

from theodolite.core import Rows
from theodolite.theory import moments

from ..shared.final_losses.inputs import inputs
from .config import RateConfig

EPS = float(np.finfo(np.float64).eps)


def predict(config: RateConfig) -> Rows:
    """Return the loss of the best linear map and that of the zero map."""
    data = moments(*inputs(config))
    zero = float(np.trace(data.yy)) / 2
    found = {"linear_optimum": data.optimal_loss(), "zero_map_final_loss": zero}
    error = EPS * config.width * zero
    return Rows({"quantity": k, "value": v, "error": error} for k, v in found.items())
