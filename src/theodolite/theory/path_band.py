r"""How narrow the band of path lengths is that carries the weight.

$b_r = \epsilon_r/\sum_s \epsilon_s$ is the law of $1 + \mathrm{Bin}(p-1, q)$,
$q = \beta/(1+\beta)$. Since $\sum_r b_r^2 \ge 1/p$ and $b_r^2 \le b_r$, what
$\epsilon_r^2$ leaves outside a band is at most $p$ times the binomial tails, which
Hoeffding bounds.
"""

import math
from fractions import Fraction

import numpy as np

from theodolite.core import ConfigError
from theodolite.theory.path_weights import (
    Beta,
    check_beta,
    check_depth,
    log_path_weights,
)

# An end of a band, as a share of the depth.
Share = float | int


def missing_mass(depth: int, beta: Beta, low: Share, high: Share) -> float:
    r"""$\sum \epsilon_r^2$ over the lengths outside $[\alpha_1 p, \alpha_2 p]$.

    Summed from the outside, so that it keeps its digits where it is small.

    Notation: $\alpha_1, \alpha_2$ the ends of the band as shares of the depth $p$.
    Assumes: Eq 16 of the paper.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, theorem 2.

    Example:
        >>> f"{missing_mass(1000, 0.5, 0.2, 0.5):.2e}"
        '6.91e-41'
    """
    first, last = _ends(check_depth(depth), low, high)
    logs = 2 * log_path_weights(depth, beta)
    with np.errstate(under="ignore"):
        return float(np.exp(logs[: first - 1]).sum() + np.exp(logs[last:]).sum())


def log_missing_mass_bound(depth: int, beta: Beta, low: Share, high: Share) -> float:
    r"""Logarithm of a bound on :func:`missing_mass`, for every depth and $\beta > 0$.

    $2p\,e^{-2(p-1)\delta^2}$, $\delta$ the distance of $\beta/(1+\beta)$ from the
    lengths outside on the scale of $(r-1)/(p-1)$; 0, the trivial bound, where the
    band does not hold $\beta/(1+\beta)$ or the bound is worse.

    Notation: as :func:`missing_mass`.
    Assumes: Eq 16 of the paper.

    Example:
        >>> round(log_missing_mass_bound(1000, 0.5, 0.2, 0.5), 3)
        -28.886
    """
    depth = check_depth(depth)
    first, last = _ends(depth, low, high)
    if depth == 1:
        return 0.0
    exact = Fraction(check_beta(beta))
    share = exact / (1 + exact)
    # The nearest lengths outside are first − 1 and last + 1.
    deltas = [share - Fraction(first - 2, depth - 1)] if first > 1 else []
    deltas += [Fraction(last, depth - 1) - share] if last < depth else []
    if not deltas:
        return -math.inf
    if min(deltas) <= 0:
        return 0.0
    return min(0.0, math.log(2 * depth) - 2 * (depth - 1) * float(min(deltas)) ** 2)


def _ends(depth: int, low: Share, high: Share) -> tuple[int, int]:
    """Return the first and the last length inside a band."""
    if not 0 <= low <= high <= 1:
        raise ConfigError(
            f"a band from {low!r} to {high!r} of the depth: pass 0 <= low <= high <= 1"
        )
    # A share such as 0.3 stands for the decimal, so that 0.3 of 10 is 3.
    shares = (Fraction(str(low)), Fraction(str(high)))
    return max(1, math.ceil(shares[0] * depth)), math.floor(shares[1] * depth)
