"""Random vectors for an operator, drawn a stretch at a time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from theodolite.instruments.operators.operator import Operator

# Numbers that are drawn in float64 before they are rounded and sent on: 8 MiB.
_STRETCH = 2**20
# From so many on, stretches of so many have generators of their own, so that threads
# can draw them: a billion from one generator take a quarter of a minute.
_LONG, _APART = 2**27, 2**24


def normal_vector(operator: Operator, generator: np.random.Generator) -> Tensor:
    """Return a standard normal vector for the operator.

    Up to 134 million numbers are those of one draw; more are the same whatever the
    number of threads.
    """
    size = operator.shape[1]
    found = torch.empty(size, dtype=operator.dtype, device=operator.device)
    if size < _LONG:
        _fill(found, generator)
        return found
    parts = found.split(_APART)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(_fill, parts, generator.spawn(len(parts))))
    return found


def _fill(vector: Tensor, generator: np.random.Generator) -> None:
    for part in vector.split(_STRETCH):
        drawn = torch.from_numpy(generator.standard_normal(len(part)))
        part.copy_(drawn.to(part.dtype))
