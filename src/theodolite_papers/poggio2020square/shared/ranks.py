"""Rank correlations of a few runs, and numbers of runs that diverged."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; NaN where there is none.

    Example:
        >>> rank_correlation([1, 2, 3], [5, 4, 2])
        -1.0
    """
    spans = [np.ptp(x) if len(x) > 2 else 0.0 for x in (first, second)]
    if not all(0 < span < math.inf for span in spans):
        return math.nan
    found: Any = spearmanr(first, second)
    return round(float(found.statistic), 12)


def known(value: float) -> float | None:
    """Return a number, or nothing in place of NaN, as rows have it.

    Example:
        >>> known(1.5), known(math.nan)
        (1.5, None)
    """
    return None if math.isnan(value) else value
