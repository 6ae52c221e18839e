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

    Up to 134 million numbers are those of one draw, on whatever device. More are the
    same whatever the number of threads; on a card they are its own.
    """
    found = _empty(operator)
    if len(found) < _LONG:
        _fill(found, generator)
        return found
    if found.device.type == "cuda":
        return found.normal_(generator=_on_card(found, generator))
    parts = found.split(_APART)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(_fill, parts, generator.spawn(len(parts))))
    return found


def sign_vector(operator: Operator, generator: np.random.Generator) -> Tensor:
    """Return a vector of random signs for the operator; a long one by a card itself."""
    found = _empty(operator)
    if len(found) >= _LONG and found.device.type == "cuda":
        made = _on_card(found, generator)
        return found.bernoulli_(0.5, generator=made).mul_(2).sub_(1)
    for part in found.split(_STRETCH):
        drawn = generator.integers(0, 2, len(part)) * 2.0 - 1.0
        part.copy_(torch.from_numpy(drawn).to(part.dtype))
    return found


def _empty(operator: Operator) -> Tensor:
    size = operator.shape[1]
    return torch.empty(size, dtype=operator.dtype, device=operator.device)


def _on_card(vector: Tensor, generator: np.random.Generator) -> torch.Generator:
    """Return a generator of a card, seeded by another."""
    seed = int(generator.integers(2**63 - 1))
    return torch.Generator(vector.device).manual_seed(seed)


def _fill(vector: Tensor, generator: np.random.Generator) -> None:
    for part in vector.split(_STRETCH):
        drawn = torch.from_numpy(generator.standard_normal(len(part)))
        part.copy_(drawn.to(part.dtype))
