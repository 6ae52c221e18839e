"""Limits of steps, rank correlations, and numbers of a flow beside descent."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.core import ConfigError


def check_halving(rates: Sequence[float]) -> None:
    """Raise an error unless each step is half of the one before."""
    pairs = itertools.pairwise(rates)
    halves = len(rates) > 1 and all(math.isclose(a, 2 * b) for a, b in pairs)
    if not halves or not rates[-1] > 0:
        raise ConfigError(
            f"rates {rates} do not halve: pass at least two, such as (0.02, 0.01)"
        )


def limit(values: Sequence[float]) -> tuple[float, float]:
    """Return the limit of results at halving steps, and the last correction.

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


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; NaN where there is none.

    Example:
        >>> rank_correlation([1, 2, 3], [5, 4, 2])
        -1.0
    """
    from scipy.stats import spearmanr

    spans = [np.ptp(x) if len(x) > 2 else 0.0 for x in (first, second)]
    if not all(0 < span < math.inf for span in spans):
        return math.nan
    result: Any = spearmanr(first, second)
    return round(float(result.statistic), 12)


def known(value: float) -> float | None:
    """Return a number, or nothing in place of NaN, as rows have it.

    Example:
        >>> known(1.5), known(math.nan)
        (1.5, None)
    """
    return None if math.isnan(value) else value
