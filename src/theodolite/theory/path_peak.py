r"""Which path length weighs most, exactly, and which scales give it that place.

$\epsilon_{r+1}/\epsilon_r = \beta(p-r)/r$ is at least 1 up to
$r = x = p\beta/(1+\beta)$. So the weights rise to $\lceil x \rceil$ and fall after it,
and where $x$ is whole $\epsilon_x = \epsilon_{x+1}$ exactly.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from theodolite.core import as_whole
from theodolite.theory.path_counts import check_length
from theodolite.theory.path_weights import Beta, check_beta


def path_peak(depth: int, beta: Beta) -> tuple[int, ...]:
    r"""The lengths of greatest weight: one, or two that tie.

    Notation: $p$ depth, $\beta$ scale of a layer.
    Assumes: Eq 16 of the paper. A float is taken for the fraction that it is, so
        that 0.1 is not $1/10$: pass ``Fraction(1, 10)`` for ties at such values.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, theorem 1.

    Example:
        >>> path_peak(100, 0.5), path_peak(9, 0.5), path_peak(10**30, 2)[0] % 10
        ((34,), (3, 4), 7)
    """
    depth, exact = as_whole("depth", depth, 1), Fraction(check_beta(beta))
    place = depth * exact / (1 + exact)
    if place.denominator == 1:
        return int(place), int(place) + 1
    return (math.ceil(place),)


@dataclass(frozen=True, kw_only=True)
class ScaleRange:
    r"""All $\beta$ at which a length weighs most, ends included.

    Attributes:
        low: Lower end, where the length below ties; 0, left out, for length 1.
        high: Upper end, where the length above ties; infinite for the whole depth.
        middle: A scale inside, at which the length weighs most alone.
    """

    low: Fraction
    high: Fraction | float
    middle: Fraction

    def __contains__(self, beta: object) -> bool:
        """Whether the length weighs most at a scale."""
        return self.low <= check_beta(beta) <= self.high


def scale_for_path_length(depth: int, length: int) -> ScaleRange:
    r"""The scales at which paths of a given length weigh most.

    $\frac{k-1}{p-k+1} \le \beta \le \frac{k}{p-k}$, for every $1 \le k \le p$.

    Notation: $k$ the length, $p$ depth; $\beta = \rho n C/\sqrt\Lambda$ is
    proportional to the scale $C$ of the weights.
    Assumes: Eq 16 of the paper.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, lemma 4.

    Example:
        >>> found = scale_for_path_length(9, 3)
        >>> str(found.low), str(found.high), 0.4 in found, 0.6 in found
        ('2/7', '1/2', True, False)
    """
    depth = as_whole("depth", depth, 1)
    k = check_length(length, depth)
    high = math.inf if k == depth else Fraction(k, depth - k)
    middle = Fraction(2 * k - 1, 2 * (depth - k) + 1)
    return ScaleRange(low=Fraction(k - 1, depth - k + 1), high=high, middle=middle)
