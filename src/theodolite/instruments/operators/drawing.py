"""Random vectors for an operator, drawn a stretch at a time."""

import numpy as np
import torch
from torch import Tensor

from theodolite.instruments.operators.operator import Operator

# Numbers that are drawn in float64 before they are rounded and sent on: 8 MiB.
_STRETCH = 2**20


def normal_vector(operator: Operator, generator: np.random.Generator) -> Tensor:
    """Return a standard normal vector for the operator.

    The numbers are those of one draw of them all, of which float64 holds a stretch.
    """
    size = operator.shape[1]
    found = torch.empty(size, dtype=operator.dtype, device=operator.device)
    for part in found.split(_STRETCH):
        drawn = torch.from_numpy(generator.standard_normal(len(part)))
        part.copy_(drawn.to(operator.dtype))
    return found
