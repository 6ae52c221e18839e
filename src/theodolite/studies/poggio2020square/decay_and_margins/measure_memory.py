"""What the end of a training keeps of where it began, and at which decay it forgets."""

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np


def memory(ends: Mapping[float, float]) -> float:
    """Return the exponent of what a training ends with in the norm it starts from.

    Args:
        ends: Positive number at the end, by norm of the layers at the start.

    Example:
        >>> round(memory({0.1: 1.0, 1.0: 10.0, 10.0: 100.0}), 12)
        1.0
    """
    starts, found = (np.log10(list(part)) for part in (ends, ends.values()))
    if not np.isfinite(found).all():
        return math.nan
    return float(np.polyfit(starts, found, 1)[0])


def threshold(memories: Mapping[float, float], level: float) -> tuple[float, bool]:
    """Return the decay at which memory falls to a share of that without decay.

    Between the decays that were tried the logarithm of the decay is interpolated.

    Args:
        memories: Memory by decay, 0 among them.
        level: The share.

    Returns:
        The decay, and whether it lies on the edge of what was tried.

    Example:
        >>> decay, edge = threshold({0: 2.0, 0.01: 1.5, 0.1: 0.5, 1.0: 0.0}, 0.5)
        >>> round(decay, 4), edge
        (0.0316, False)
    """
    wanted = level * memories[0]
    decays = sorted(decay for decay in memories if decay > 0)
    if any(math.isnan(value) for value in memories.values()):
        return math.nan, False
    if not memories[decays[0]] > wanted:
        return decays[0], True
    for low, high in pairwise(decays):
        above, below = memories[low], memories[high]
        if below <= wanted:
            share = (above - wanted) / (above - below)
            return low * (high / low) ** share, False
    return decays[-1], True
