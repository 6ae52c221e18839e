r"""Weights of path lengths in a residual network, in the log domain.

$\epsilon_r = \frac1z \binom{p-1}{r-1}\beta^r$, $r = 1, \dots, p$, with
$\sum_r \epsilon_r^2 = 1$. Divided by their sum they are exactly the law of
$1 + \mathrm{Bin}(p-1, \beta/(1+\beta))$, whose logarithms Loader's form gives without
the cancellation of $\log\Gamma$: for $n = p - 1$, $k = r - 1$, $q = \beta/(1+\beta)$,
$\log b_k = s(n) - s(k) - s(n-k) - D(k, nq) - D(n-k, n(1-q)) +
\frac12 \log\frac{n}{2\pi k(n-k)}$, where $s$ is the error of Stirling's formula and
$D(k, m) = k\log(k/m) + m - k$.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import gammaln

from theodolite.core import ConfigError, as_integer

# Types of β: a fraction is exact, a float counts as its exact binary fraction.
Beta = float | int | Fraction

# Memory: about ten arrays of one float per length at once.
MOST_LENGTHS = 10_000_000


def log_path_weights(depth: int, beta: Beta) -> np.ndarray:
    r"""Return the logarithms of the weights $\epsilon_r$, $r = 1, \dots, p$.

    Notation: $p$ depth, $\beta = \rho n C/\sqrt\Lambda$.
    Assumes: Eq 16 of the paper. The error is at most
        $10^{-12}\max(1, |\log\epsilon_r|)$ up to depth $10^6$, most of it from the
        rounding of $\beta$.

    Args:
        depth: Layers of the network, from 1 to ten million.
        beta: Scale of a layer, positive.

    Returns:
        Shape (depth,).

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eq 16; Loader
        (2000), Fast and Accurate Computation of Binomial Probabilities.

    Example:
        >>> np.exp(2 * log_path_weights(2, 0.5)).round(6)
        array([0.8, 0.2])
    """
    law = _log_binomial(check_depth(depth) - 1, _as_float(beta))
    return law - _half_log_sum(law)


def path_weights(depth: int, beta: Beta) -> np.ndarray:
    r"""Weights $\epsilon_r$ of Eq 16, $\sum_r \epsilon_r^2 = 1$, shape (depth,).

    Example:
        >>> path_weights(100, 0.5).argmax() + 1
        np.int64(34)
    """
    return np.exp(log_path_weights(depth, beta))


def log_path_normaliser(depth: int, beta: Beta) -> float:
    r"""Logarithm of $z$ in Eq 16, summed directly: any $\beta > 0$.

    $z = \beta(1+\beta)^{p-1}\,(\sum_k b_k^2)^{1/2}$ with $b$ the binomial law.

    Example:
        >>> round(math.exp(2 * log_path_normaliser(10, 2)))
        305998100
    """
    n, scale = check_depth(depth) - 1, _as_float(beta)
    rest = _half_log_sum(_log_binomial(n, scale))
    return math.log(scale) + n * math.log1p(scale) + rest


def log_legendre_normaliser(depth: int, beta: Beta) -> float:
    r"""Logarithm of $z$ in Eq 16 by Legendre polynomials.

    $z^2 = \beta^2 S_{p-1}$ with $S_n = (1-\beta^2)^n P_n(\frac{1+\beta^2}{1-\beta^2})
    = \sum_k \binom nk^2 \beta^{2k}$. Bonnet's recurrence for $P_n$ becomes
    $(n+1)S_{n+1} = (2n+1)(1+\beta^2)S_n - n(1-\beta^2)^2 S_{n-1}$, which needs no
    exception at $\beta = 1$, and $S_n(\beta) = \beta^{2n}S_n(1/\beta)$ beyond it.

    References:
        Littwin & Wolf (2016), Eq 37, with its sum begun at 0.

    Example:
        >>> round(math.exp(2 * log_legendre_normaliser(10, 1)))  # 18 choose 9
        48620
    """
    n, scale = check_depth(depth) - 1, _as_float(beta)
    return math.log(scale) + log_legendre_sum(n, scale) / 2


def log_legendre_sum(order: int, beta: Beta) -> float:
    r"""Logarithm of $(1-\beta^2)^n P_n(\frac{1+\beta^2}{1-\beta^2})$, any $\beta > 0$.

    Example:
        >>> round(math.exp(log_legendre_sum(10, 0.5)), 6)
        623.520539
    """
    n, scale = as_integer("order", order, 0), _as_float(beta)
    if scale > 1:
        return 2 * n * math.log(scale) + log_legendre_sum(n, 1 / scale)
    plus, minus = 1 + scale**2, ((1 - scale) * (1 + scale)) ** 2
    ratio, logs = plus, []
    for k in range(1, n + 1):  # ratio = S_k / S_{k-1}
        logs.append(math.log(ratio))
        ratio = ((2 * k + 1) * plus - k * minus / ratio) / (k + 1)
    return math.fsum(logs)


@dataclass(frozen=True, kw_only=True)
class LengthMoments:
    """Mean and variance of the path length."""

    mean: float
    variance: float


def path_length_moments(depth: int, beta: Beta) -> LengthMoments:
    r"""Mean and variance of the length under $\epsilon_r^2$.

    The mean is also $\partial \log z / \partial \log \beta$.

    Example:
        >>> path_length_moments(10, 1).mean
        5.5
    """
    share = np.exp(2 * log_path_weights(depth, beta))
    share /= share.sum()
    lengths = np.arange(1.0, len(share) + 1)
    start = float(lengths[share.argmax()])  # keeps digits when deep
    shift = float(share @ (lengths - start))
    variance = float(share @ (lengths - start - shift) ** 2)
    return LengthMoments(mean=start + shift, variance=variance)


def path_weight_slopes(depth: int, beta: Beta) -> np.ndarray:
    r"""Derivatives of the weights by the logarithm of the scale of all weights.

    $C\,\partial\epsilon_r/\partial C = \epsilon_r\,(r - \sum_s s\,\epsilon_s^2)$, since
    $z$ depends on $C$ too.

    Assumes: as :func:`log_path_weights`, and $\beta \propto C$.

    Returns:
        Shape (depth,).

    References:
        Littwin & Wolf (2016), above Eq 19, which has $r\,\epsilon_r$.

    Example:
        >>> path_weight_slopes(10, 0.5)[[0, 3]].round(6)
        array([-0.170402,  0.054733])
    """
    weights = path_weights(depth, beta)
    lengths = np.arange(1.0, len(weights) + 1)
    return weights * (lengths - path_length_moments(depth, beta).mean)


def check_depth(depth: object) -> int:
    """Return a depth whose lengths fit in memory, or raise."""
    count = as_integer("depth", depth, 1)
    if count > MOST_LENGTHS:
        raise ConfigError(
            f"depth is {count}: weights are listed up to depth {MOST_LENGTHS:,}; ask "
            "path_peak, which takes any depth"
        )
    return count


def check_beta(beta: object) -> Beta:
    """Return a positive, finite scale, or raise."""
    if isinstance(beta, np.floating | np.integer):
        beta = beta.item()
    if (
        isinstance(beta, float | int | Fraction)
        and not isinstance(beta, bool)
        and 0 < beta < math.inf
    ):
        return beta
    raise ConfigError(
        f"beta is {beta!r}: pass a positive, finite number, as a float or a Fraction"
    )


def _as_float(beta: object) -> float:
    """Return a scale as a float that is neither 0 nor infinite, or raise."""
    exact = check_beta(beta)
    try:
        scale = float(exact)
    except OverflowError:
        scale = math.inf
    if not 0 < scale < math.inf:
        raise ConfigError(
            "beta is a fraction beyond the range of floats: pass one from 1e-300 to "
            "1e300, or ask path_peak, which takes any"
        )
    return scale


def _log_binomial(n: int, beta: float) -> np.ndarray:
    r"""Logarithms of $\mathrm{Bin}(n, \beta/(1+\beta))$ at $0, \dots, n$."""
    small = min(beta, 1 / beta) if beta > 0 else beta
    mostly, rarely = 1 / (1 + small), small / (1 + small)
    taken, passed = (rarely, mostly) if beta <= 1 else (mostly, rarely)
    # log(1 + 1/β), also where 1/β is infinite.
    log1p = math.log1p(1 / beta) if beta >= 1 else math.log1p(beta) - math.log(beta)
    logs = np.empty(n + 1)
    logs[0], logs[n] = -n * math.log1p(beta), -n * log1p
    if n < 2:
        return logs
    k = np.arange(1.0, n)
    stirling = _stirling_error(np.arange(1.0, n + 1))
    error = stirling[-1] - stirling[:-1] - stirling[-2::-1]
    deviance = _deviance(k, n * taken) + _deviance(n - k, n * passed)
    logs[1:n] = error - deviance + np.log(n / (2 * math.pi * k * (n - k))) / 2
    return logs


def _stirling_error(k: np.ndarray) -> np.ndarray:
    r"""Return $\log k! - (k + \frac12)\log k + k - \frac12\log 2\pi$, $k$ from 1 up."""
    small = k[:16]
    exact = gammaln(small + 1) - (small + 0.5) * np.log(small) + small
    exact -= math.log(2 * math.pi) / 2
    x = 1 / k[16:]
    y = x * x
    tail = 1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))
    return np.concatenate([exact, x * tail])


def _deviance(k: np.ndarray, mean: float) -> np.ndarray:
    r"""Return $k\log(k/m) + m - k$ without cancellation near $k = m$.

    With $v = (k-m)/(k+m)$ it is $(k-m)v + 2k(\mathrm{artanh}\,v - v)$.
    """
    gap = k - mean
    v = gap / (k + mean)
    near = np.abs(v) < 0.1
    deviance = np.empty_like(k)
    w = v[near] ** 2
    # artanh v − v = v³/3 + v⁵/5 + …: nine terms leave 1e-20 of it at v = 0.1.
    series = sum(w**j / (2 * j + 3) for j in range(9, -1, -1))
    deviance[near] = gap[near] * v[near] + 2 * k[near] * v[near] * w * series
    far = k[~near]
    log_mean = math.log(mean) if mean > 0 else -math.inf
    deviance[~near] = far * (np.log(far) - log_mean) - gap[~near]
    return deviance


def _half_log_sum(logs: np.ndarray) -> float:
    """Return half the logarithm of the sum of squares, from logarithms."""
    most = float(logs.max())
    return most + math.log(float(np.exp(2 * (logs - most)).sum())) / 2
