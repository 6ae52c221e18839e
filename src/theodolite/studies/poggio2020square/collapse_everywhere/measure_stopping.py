"""What stopping early would gain, and which of two trainings is good sooner."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

GOOD = 1.1  # times the least error of the worse


def stopping_gain(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how much less a training errs where it was best than at its end.

    When to stop is chosen on one half of the samples and the gain read on the other,
    both ways round, so that chance gains nothing.

    Args:
        first: Errors on one half of the samples, in order of time.
        second: Errors on the other half.

    Example:
        >>> stopping_gain([0.5, 0.1, 0.3], [0.6, 0.2, 0.3])
        0.15
    """
    gains = [
        there[-1] - there[int(np.argmin(here))]
        for here, there in ((first, second), (second, first))
    ]
    return round(float(np.mean(gains)), 12)


def sooner(one: Mapping[int, float], other: Mapping[int, float]) -> tuple[float, float]:
    """Return by how many decades one training is good sooner than another.

    Good is within a tenth of the least error of the worse of the two, so that both
    come there and chance has less to say on when. Between the epochs looked at nothing
    is known, which is the error.

    Args:
        one: Error by epoch.
        other: Error by epoch, of the other training.

    Example:
        >>> found = sooner({1: 0.5, 10: 0.2}, {1: 0.5, 10: 0.4, 100: 0.2})
        >>> round(found[0], 3), round(found[1], 3)
        (1.0, 2.0)
    """
    good = GOOD * max(min(one.values()), min(other.values()))
    times, late = zip(*(_first(errors, good) for errors in (one, other)), strict=True)
    return math.log10(times[1] / times[0]), sum(late)


def _first(errors: Mapping[int, float], good: float) -> tuple[float, float]:
    """Return the first epoch that is good, and how late it may be, in decades."""
    epochs = sorted(errors)
    place = next(i for i, epoch in enumerate(epochs) if errors[epoch] <= good)
    time = max(epochs[place], 1)
    before = max(epochs[place - 1], 1) if place else time
    return float(time), math.log10(time / before)
