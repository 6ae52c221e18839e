r"""The path length with the largest weight, and the weight of a band around it.

$\epsilon_{r+1}/\epsilon_r = \beta(p-r)/r$ is at least 1 up to
$r = x = p\beta/(1+\beta)$. So the weights rise to $\lceil x \rceil$ and fall after it,
and where $x$ is whole $\epsilon_x = \epsilon_{x+1}$ exactly.

$b_r = \epsilon_r/\sum_s \epsilon_s$ is the law of $1 + \mathrm{Bin}(p-1, q)$,
$q = \beta/(1+\beta)$. Since $\sum_r b_r^2 \ge 1/p$ and $b_r^2 \le b_r$, the mass of
$\epsilon_r^2$ outside a band is at most $p$ times the binomial tails, which Hoeffding
bounds.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from theodolite.core import ConfigError, as_integer

from .length_weights import Beta, check_beta, check_depth, log_path_weights

# An end of a band, as a share of the depth.
Share = float | int


def missing_mass(depth: int, beta: Beta, low: Share, high: Share) -> float:
    r"""Return $\sum \epsilon_r^2$ over lengths outside $[\alpha_1 p, \alpha_2 p]$.

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
    r"""Return the log of a bound on :func:`missing_mass` for any depth, $\beta > 0$.

    The bound is $2p\,e^{-2(p-1)\delta^2}$ with $\delta$ the distance of
    $\beta/(1+\beta)$ from the lengths outside, on the scale of $(r-1)/(p-1)$. The
    result is 0, the trivial bound, where the band does not contain $\beta/(1+\beta)$ or
    the bound is worse.

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
    # A share such as 0.3 means the decimal number, so that 0.3 of 10 is 3.
    shares = (Fraction(str(low)), Fraction(str(high)))
    return max(1, math.ceil(shares[0] * depth)), math.floor(shares[1] * depth)


def path_peak(depth: int, beta: Beta) -> tuple[int, ...]:
    r"""Return the lengths of largest weight: one, or two that tie.

    Notation: $p$ depth, $\beta$ scale of a layer.
    Assumes: Eq 16 of the paper. A float counts as its exact binary fraction, so that
        0.1 is not $1/10$: pass ``Fraction(1, 10)`` for ties at such values.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, theorem 1.

    Example:
        >>> path_peak(100, 0.5), path_peak(9, 0.5), path_peak(10**30, 2)[0] % 10
        ((34,), (3, 4), 7)
    """
    depth, exact = as_integer("depth", depth, 1), Fraction(check_beta(beta))
    place = depth * exact / (1 + exact)
    if place.denominator == 1:
        return int(place), int(place) + 1
    return (math.ceil(place),)


@dataclass(frozen=True, kw_only=True)
class ScaleRange:
    r"""All $\beta$ at which a length has the largest weight, ends included.

    Attributes:
        low: Lower end, where the length below ties; 0, not included, for length 1.
        high: Upper end, where the length above ties; infinite for the whole depth.
        middle: A scale inside, at which no other length ties.
    """

    low: Fraction
    high: Fraction | float
    middle: Fraction

    def __contains__(self, beta: object) -> bool:
        """Return whether the length has the largest weight at a scale."""
        return self.low <= check_beta(beta) <= self.high


def scale_for_path_length(depth: int, length: int) -> ScaleRange:
    r"""Return the scales at which paths of a given length have the largest weight.

    $\frac{k-1}{p-k+1} \le \beta \le \frac{k}{p-k}$, for every $1 \le k \le p$.

    Notation: $k$ the length, $p$ depth; $\beta = \rho n C/\sqrt\Lambda$ is
    proportional to the scale $C$ of the weights.
    Assumes: Eq 16 of the paper.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, lemma 4.

    Example:
        >>> scales = scale_for_path_length(9, 3)
        >>> str(scales.low), str(scales.high), 0.4 in scales, 0.6 in scales
        ('2/7', '1/2', True, False)
    """
    depth = as_integer("depth", depth, 1)
    k = int(length)
    if not 1 <= k <= depth:
        raise ConfigError(
            f"the path length is {k} in a network of depth {depth}: pass a whole "
            f"number from 1 to {depth}"
        )
    high = math.inf if k == depth else Fraction(k, depth - k)
    middle = Fraction(2 * k - 1, 2 * (depth - k) + 1)
    return ScaleRange(low=Fraction(k - 1, depth - k + 1), high=high, middle=middle)
