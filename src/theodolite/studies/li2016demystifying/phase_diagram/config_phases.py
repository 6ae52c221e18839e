"""The three ends of a training run, and the networks of the phase diagram."""

import math
from typing import Any

STUCK, TRAINS, DIVERGES = 0, 1, 2
NAMES = {STUCK: "stays", TRAINS: "trains", DIVERGES: "diverges"}
FAMILIES = ("linear", "relu")
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"shortcut": 2, "skip": False},
    "one_shortcut": {"shortcut": 1},
    "two_shortcut": {"shortcut": 2},
    "three_shortcut": {"shortcut": 3},
}
# A run has trained when a tenth of what there was to gain is left.
LEFT = 0.1


def phase_of(end: float, *, start: float, best: float) -> int:
    """Return the phase of a run from its first, last and least possible loss.

    Example:
        >>> NAMES[phase_of(0.4, start=5.0, best=0.3)]
        'trains'
        >>> NAMES[phase_of(float("nan"), start=5.0, best=0.3)]
        'diverges'
    """
    if not math.isfinite(end) or end > start * (1 + 1e-9):
        return DIVERGES
    return TRAINS if end <= best + LEFT * (start - best) else STUCK
