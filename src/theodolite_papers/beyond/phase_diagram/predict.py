"""The smallest loss of a linear map, from which excess losses are counted."""

import numpy as np

from theodolite.core import Rows
from theodolite.theory import moments

from .config import Config, data_of

EPS = float(np.finfo(np.float64).eps)


def predict(config: Config) -> Rows:
    """Return the optimal loss; ``combine`` predicts the phases of each cell."""
    data = moments(*data_of(config))
    best, error = data.optimal_loss(), EPS * config.width * float(np.trace(data.yy))
    return Rows([{"quantity": "optimal_loss", "value": best, "error": error}])
