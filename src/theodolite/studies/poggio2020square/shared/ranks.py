"""Rank correlations of a few runs."""

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
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    found: Any = spearmanr(first, second)
    return round(float(found.statistic), 12)
