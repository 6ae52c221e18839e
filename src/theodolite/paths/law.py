r"""The law of path lengths of Littwin and Wolf, fitted to a measured ensemble.

Their $\epsilon_r^2 \propto \binom{n}{r}^2 \beta^{2r}$ gives each path that takes $r$
branches the weight $\beta^r$ and lets all of them add up coherently. For networks that
are more than a chain, $\binom{n}{r}$ is the number $N_r$ of paths. It is an exponential
family in $\log\beta$ with statistic $r$, so the member nearest in the sense of Kullback
and Leibler is the one whose mean of $r$ is the measured one.

References:
    Littwin & Wolf (2016), The loss surface of residual networks, eq. (16).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Far beyond what any measured mean asks for, and safe in exponentials.
_STEEPEST = 300.0


@dataclass(frozen=True, kw_only=True)
class Fit:
    r"""A member of the law's family beside measured shares.

    Attributes:
        beta: Weight of a branch, 0 or infinity where only the shortest or only the
            longest paths carry energy.
        shares: Of the law, by branches taken.
        divergence: Of Kullback and Leibler, from the law to the measured, in nats,
            over the lengths that the law knows.
        distance: Half the sum of absolute differences of shares, over all lengths.
    """

    beta: float
    shares: np.ndarray
    divergence: float
    distance: float


def fit(shares: np.ndarray, log_counts: np.ndarray) -> Fit:
    """Return the member of the family that is nearest to measured shares.

    Lengths of which there is no path from the inputs are left out of the fit; energy
    that biases have there counts in the distance.

    Example:
        >>> found = fit(np.array([1, 4, 1]) / 6, np.log([1, 2, 1]))
        >>> round(found.beta, 9), round(found.distance, 9)
        (1.0, 0.0)
    """
    degrees = np.arange(len(shares))
    present = np.isfinite(log_counts)
    inside = np.where(present, shares, 0.0)
    inside = inside / inside.sum() if inside.any() else present / present.sum()
    wanted = float(inside @ degrees)
    low, high = degrees[present][[0, -1]]
    if wanted <= low or wanted >= high:
        steep = -math.inf if wanted <= low else math.inf
    else:
        steep = _solve(wanted, log_counts)
    law = law_shares(steep, log_counts)
    both = (inside > 0) & (law > 0)
    ratio = np.where(both, inside, 1.0) / np.where(both, law, 1.0)
    divergence = float((inside * np.log(ratio)).sum())
    return Fit(
        beta=math.exp(steep) if steep < math.inf else math.inf,
        shares=law,
        divergence=max(divergence, 0.0),
        distance=float(np.abs(shares - law).sum() / 2),
    )


def law_shares(log_beta: float, log_counts: np.ndarray) -> np.ndarray:
    """Return shares proportional to squared counts and weights of paths."""
    degrees = np.arange(len(log_counts))
    if not math.isfinite(log_beta):
        present = np.flatnonzero(np.isfinite(log_counts))
        return (degrees == present[0 if log_beta < 0 else -1]).astype(np.float64)
    logs = 2 * (log_counts + degrees * log_beta)
    found = np.exp(logs - logs.max())
    return found / found.sum()


def scale_from_gains(gains: Sequence[float]) -> float:
    r"""Return the $\beta$ that gains of single branches lead to, if all paths add up.

    With gains $g_j$ the paths that take $r$ branches weigh $e_r(g)$, the elementary
    symmetric polynomial; the $\beta$ of the chain of as many branches that is nearest.

    Example:
        >>> round(scale_from_gains([0.5, 0.5, 0.5]), 9)
        0.5
    """
    logs, plain = np.full((2, len(gains) + 1), -math.inf)
    logs[0] = plain[0] = 0.0
    for gain in gains:
        plain[1:] = np.logaddexp(plain[1:], plain[:-1])
        if gain > 0:
            logs[1:] = np.logaddexp(logs[1:], logs[:-1] + math.log(gain))
    shares = np.exp(2 * (logs - logs.max()))
    return fit(shares / shares.sum(), plain).beta


def _solve(wanted: float, log_counts: np.ndarray) -> float:
    """Find the scale whose mean is wanted; the mean rises with it."""
    degrees = np.arange(len(log_counts))
    low, high = -_STEEPEST, _STEEPEST
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if law_shares(middle, log_counts) @ degrees < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
