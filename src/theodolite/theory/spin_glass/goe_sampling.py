r"""Means over ordered eigenvalues of the Gaussian orthogonal ensemble, by sampling.

The matrix is similar to a tridiagonal one with independent entries, normal of variance
2 on the diagonal and $\chi_{n-1}, \dots, \chi_1$ beside it; the smallest eigenvalues
depend on its first rows, a few times $n^{1/3}$ of them. A mean such as
$E\,e^{-c\lambda^2}$ is carried by rare matrices, and the likeliest of them makes the
exponent less the cost of its entries stationary: with $G = -2c\lambda$ and the
eigenvector $\psi$ of the lifted matrix itself, the diagonal is lifted by
$2G\psi_i^2$ and the entries beside it by $G\psi_i\psi_{i+1}$. Samples are drawn around
that matrix and weighted back.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammaln

from theodolite.core import as_integer, stream

# Rows beyond the level, in units of the edge: an eigenvector has e^{-50} left there.
_DECAY = 14.0
_BISECTIONS = 44
# The share of the lift, of those tried from 0.8 to 1, with the least spread of weights.
_SHARE = 0.9
_ROUNDS = 200


@dataclass(frozen=True, kw_only=True)
class SampledMean:
    """A mean by weighted samples.

    Attributes:
        log: Logarithm of the mean.
        error: Standard error of the logarithm: the relative error of the mean.
        effective: Number of equally weighted samples with the same error.
    """

    log: float
    error: float
    effective: float


def sampled_mean(
    size: int,
    index: int,
    log_value: Callable[[np.ndarray], np.ndarray],
    *,
    tilt: float,
    samples: int,
    seed: int,
) -> SampledMean:
    r"""Return the mean of a function of the (index + 1)-th smallest eigenvalue.

    Assumes: Gaussian orthogonal ensemble, off-diagonal variance 1; a positive function
    that falls about as fast as $e^{-c\lambda^2}$.

    Args:
        size: Size $n$ of the matrix.
        index: k, from 0 up; small beside the size.
        log_value: Logarithm of the function, at an array of eigenvalues.
        tilt: c, from 0 up; it decides where samples are drawn, not what is estimated.
        samples: Number of samples.
        seed: Seed of the samples.

    References:
        Dumitriu & Edelman (2002), Matrix models for beta ensembles.

    Example:
        >>> def log_value(s):
        ...     return -0.1 * s**2
        >>> mean = sampled_mean(50, 0, log_value, tilt=0.1, samples=500, seed=0)
        >>> mean.effective > 100
        True
    """
    n, k = as_integer("size", size, 2), as_integer("index", index, 0)
    count = as_integer("samples", samples, 2)
    values, log_weights = _weighted_eigenvalues(_lifted(n, k, tilt), k, count, seed)
    logs = log_weights + log_value(values)
    top = logs.max()
    shares = np.exp(logs - top)
    mean = shares.mean()
    error = shares.std(ddof=1) / np.sqrt(shares.size) / mean
    effective = shares.sum() ** 2 / (shares**2).sum()
    log = float(top + np.log(mean))
    return SampledMean(log=log, error=float(error), effective=float(effective))


@dataclass(frozen=True)
class _Lifted:
    """The matrix around which samples are drawn: its first rows.

    Attributes:
        size: Size of the whole matrix.
        diagonal: Means on the diagonal, zero without a lift.
        shrink: Factors on the entries beside it, one without.
        free: Degrees of freedom of those entries.
    """

    size: int
    diagonal: np.ndarray
    shrink: np.ndarray
    free: np.ndarray


def _lifted(n: int, k: int, tilt: float) -> _Lifted:
    """Return the likeliest matrix under the tilt, by damped iteration."""
    # With a = 4c·n^{1/3}, the level that a·h − h³/24 prefers, in units of the edge.
    height = np.sqrt(32 * tilt * n ** (1 / 3)) + 3 * k ** (2 / 3)
    rows = min(n, int((height + _DECAY) * n ** (1 / 3)) + 5)
    free = n - np.arange(1.0, rows)
    beside = np.sqrt(2) * np.exp(gammaln((free + 1) / 2) - gammaln(free / 2))
    lift, change = np.zeros(rows), np.zeros(rows - 1)
    for _ in range(_ROUNDS if tilt else 0):
        values, vectors = eigh_tridiagonal(
            lift, beside + change, select="i", select_range=(k, k)
        )
        pull, psi = -2 * tilt * values[0], vectors[:, 0]
        lift = 0.7 * lift + 0.3 * 2 * pull * psi**2
        change = 0.7 * change + 0.3 * pull * psi[:-1] * psi[1:]
    shrink = np.maximum(0.75, 1 + _SHARE * change / beside)
    return _Lifted(n, _SHARE * lift, shrink, free)


def _weighted_eigenvalues(
    around: _Lifted, index: int, samples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw matrices around a lifted one; return eigenvalues and log weights."""
    rng = stream(seed, "tridiagonal")
    shift, shrink, free = around.diagonal, around.shrink, around.free
    normal = rng.standard_normal((samples, shift.size))
    square = rng.chisquare(free, (samples, free.size))
    weights = -(shift + 2 * np.sqrt(2) * normal) @ shift / 4
    weights += np.log(shrink) @ free + square @ ((1 - shrink**2) / 2)
    diagonal = (shift + np.sqrt(2) * normal).T.copy()
    beside = (shrink**2 * square).T.copy()
    return _ordered(diagonal, beside, index, around.size), weights


def _ordered(
    diagonal: np.ndarray, squares: np.ndarray, index: int, n: int
) -> np.ndarray:
    """Return the (index + 1)-th smallest of each column's matrix, by bisection."""
    reach = 2 * np.sqrt(n) + 24.0
    low = np.full(diagonal.shape[1], -reach)
    high = np.full(diagonal.shape[1], reach)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enough = _below(diagonal, squares, middle) > index
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return (low + high) / 2


def _below(diagonal: np.ndarray, squares: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Count eigenvalues below a point by the signs of the pivots."""
    pivot = diagonal[0] - point
    count = (pivot < 0).astype(np.int64)
    for row, square in zip(diagonal[1:], squares, strict=True):
        pivot = row - point - square / np.where(pivot == 0, 1e-300, pivot)
        count += pivot < 0
    return count
