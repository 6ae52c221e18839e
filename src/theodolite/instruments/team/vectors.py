"""Vectors that all processes of a team multiply."""

import torch
from torch import Tensor

from theodolite.core import MeasurementError
from theodolite.instruments.team.processes import Team

# Entries that are marked at a time: what that takes does not grow with the vector.
_STRETCH = 2**20


def agreed(vector: Tensor, team: Team) -> Tensor:
    """Return the vector that all processes mean, the first one's.

    Processes that solve the same problem may come to vectors that differ by rounding,
    on machines of several makes. What differs by more was never meant to be one vector.

    Raises:
        MeasurementError: If the vectors are different ones.
    """
    if not team.several or team.alike(_mark(vector)):
        return vector
    first = team.broadcast(vector)
    limit = torch.finfo(vector.dtype).eps ** 0.5 * float(first.norm())
    if team.largest(not float((vector - first).norm()) <= limit):
        raise MeasurementError(
            f"the {team.size} ranks multiply different vectors, wanted is one: draw it "
            "from the same seed on every rank, or send it from the first by "
            "team.broadcast(vector)"
        )
    return first


def _mark(vector: Tensor) -> int:
    """Return a whole number that changes with any bit of a vector, all but surely."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = vector.contiguous().view(kinds[vector.element_size()])
    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for place, part in enumerate(bits.split(_STRETCH)):
        odd = torch.arange(1, 2 * len(part), 2, device=bits.device)
        total += (2 * place + 1) * (part.to(torch.int64) * odd).sum()
    return int(total)
