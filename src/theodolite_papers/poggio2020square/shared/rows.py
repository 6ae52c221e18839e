"""Rows of computed numbers, and what is read off them with its sign."""

from collections.abc import Sequence

import numpy as np


def limit(values: Sequence[float]) -> tuple[float, float]:
    """Return what results at steps that halve tend to, with the last correction.

    Romberg's scheme for an error that begins with the first power of the step.

    Example:
        >>> limit([1.5, 1.25, 1.125])
        (1.0, 0.0)
    """
    table = np.asarray(values, dtype=np.float64)
    last, order = float(table[-1]), 1
    while len(table) > 1:
        before = float(table[-1])
        table = (2**order * table[1:] - table[:-1]) / (2**order - 1)
        last, order = before, order + 1
    value = float(table[-1])
    return value, abs(value - last)
