r"""Energies by path length, and the law of Littwin and Wolf fitted to them.

Of coefficients $c_{mr}$ of sample $m$: the energy $E_r$ is the mean over samples of the
mean square of $c_{mr}$, its share $p_r = E_r / \sum_s E_s$; effective depth and spread
are mean and standard deviation of $r$ under $p$. Errors of ratios are by linearisation.

The law $\epsilon_r^2 \propto \binom{n}{r}^2 \beta^{2r}$ gives each path that takes $r$
branches the weight $\beta^r$ and lets all of them add up coherently. For networks that
are more than a chain, $\binom{n}{r}$ is the number $N_r$ of paths. It is an exponential
family in $\log\beta$ with statistic $r$, so the member nearest in Kullback–Leibler
divergence is the one whose mean of $r$ is the measured one.

References:
    Littwin & Wolf (2016), The loss surface of residual networks, eq. (16).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Far larger than any measured mean needs, and safe in exponentials.
_STEEPEST = 300.0


@dataclass(frozen=True, kw_only=True)
class Fit:
    r"""The law that fits measured shares best."""

    # Weight of a branch, 0 or infinity where only the shortest or only the longest
    # paths carry energy.
    beta: float
    shares: np.ndarray  # of the law, by branches taken
    # Of Kullback and Leibler, from the law to the measured, in nats, over the lengths
    # that the law knows.
    divergence: float
    distance: float  # half the sum of absolute differences of shares, over all lengths


def fit(shares: np.ndarray, log_counts: np.ndarray) -> Fit:
    """Return the member of the family that is nearest to measured shares.

    Lengths without a path from the inputs are left out of the fit; energy of biases at
    these lengths counts in the distance.

    Example:
        >>> nearest = fit(np.array([1, 4, 1]) / 6, np.log([1, 2, 1]))
        >>> round(nearest.beta, 9), round(nearest.distance, 9)
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
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()


def scale_from_gains(gains: Sequence[float]) -> float:
    r"""Return the $\beta$ predicted from the gains of single branches.

    If all paths add coherently, those that take $r$ branches have the weight $e_r(g)$,
    the elementary symmetric polynomial of the gains. A chain is fitted to them.

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
    """Return the log scale at which the law has the wanted mean; found by bisection."""
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


@dataclass(frozen=True, kw_only=True)
class Energies:
    """Energies, shares and depth of one polynomial, each with its error."""

    energy: np.ndarray  # mean square of a coefficient
    energy_error: np.ndarray
    share: np.ndarray  # of all energy
    share_error: np.ndarray
    # Product with the sum of all, divided by its square; adds up to 1.
    alignment: np.ndarray
    alignment_error: np.ndarray
    depth: float  # mean of the degree under the shares
    depth_error: float
    spread: float  # standard deviation of the degree under the shares
    spread_error: float


def energies_of(squares: np.ndarray, products: np.ndarray) -> Energies:
    """Return energies from the contributions of each sample.

    Args:
        squares: Mean square of every coefficient, shape (samples, degrees).
        products: Mean product of every coefficient with their sum, same shape.
    """
    degrees = np.arange(squares.shape[1])
    energy = squares.mean(0)
    total = energy.sum()
    share = energy / total
    depth = float(share @ degrees)
    variance = float(share @ (degrees - depth) ** 2)
    whole = products.sum(1, keepdims=True)
    alignment = products.mean(0) / whole.mean()
    spread = math.sqrt(variance)
    moved = (squares @ (degrees - depth)) / total
    widened = (squares @ ((degrees - depth) ** 2 - variance)) / total
    return Energies(
        energy=energy,
        energy_error=standard_error(squares),
        share=share,
        share_error=standard_error((squares - share * squares.sum(1)[:, None]) / total),
        alignment=alignment,
        alignment_error=standard_error((products - alignment * whole) / whole.mean()),
        depth=depth,
        depth_error=float(standard_error(moved)),
        spread=spread,
        spread_error=float(standard_error(widened)) / (2 * spread) if spread else 0.0,
    )


def standard_error(values: np.ndarray) -> np.ndarray:
    """Return the standard error of a mean over the first axis; infinite for one."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], math.inf)
    return values.std(axis=0, ddof=1) / math.sqrt(count)
