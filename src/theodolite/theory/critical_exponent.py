r"""How fast the mean number of critical points grows with dimension.

$\theta_k = f(x)$ with $f(x) = \frac12\log x - \frac{x-1}{x+1}$ and $x = v''/v'$, for
every fixed index $k \ge 0$. Since $f'(x) = \frac{(x-1)^2}{2x(x+1)^2} \ge 0$, f rises
strictly, and since x is the mean of r − 1 under the weights $\epsilon_r^2 r$, it is
largest, p − 1, where all weight is on the greatest order p. That proves theorem 5.
"""

import math

import numpy as np

from theodolite.core import ConfigError, MixtureLike, Numbers, as_mixture, as_numbers
from theodolite.theory.mixtures import mixture_moments

_TASK = "the asymptotic number of critical points"


def critical_exponent(mixture: MixtureLike) -> float:
    r"""Limit of $\frac1\Lambda \log$ of the mean number of points of a fixed index.

    Assumes: dimension to infinity at fixed index $k \ge 0$; orders from 2 up, which
    makes $v'' \ge v'$ (below that the formula would go negative, while a minimum
    always exists).

    Args:
        mixture: $\epsilon_r^2$ by order.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, eq. (31);
        Auffinger & Ben Arous (2013), Complexity of random smooth functions on the
        high-dimensional sphere, corollary 1.1.

    Example:
        >>> round(critical_exponent({10: 1.0}), 12)
        0.298612288668
    """
    kept = as_mixture(mixture, least=2, task=_TASK)
    return float(exponent_of_ratio(mixture_moments(kept).ratio))


def exponent_of_ratio(ratio: Numbers) -> np.ndarray:
    r"""The exponent as a function of $x = v''/v'$ alone.

    Assumes: $x \ge 1$, as for all mixtures of orders from 2 up.

    Args:
        ratio: $x$, of any shape.

    Example:
        >>> exponent_of_ratio([1.0, 9.0]).round(6)
        array([0.      , 0.298612])
    """
    x = _ratios(ratio)
    # Half the logarithm is artanh t, so that the exponent is t³/3 + t⁵/5 + …: near 1
    # the two terms of the closed form would cancel.
    t = (x - 1) / (x + 1)
    near = t**3 * (1 / 3 + t**2 * (1 / 5 + t**2 * (1 / 7 + t**2 / 9)))
    return np.where(t < 1e-2, near, 0.5 * np.log(x) - t)


def exponent_slope(ratio: Numbers) -> np.ndarray:
    r"""Derivative $\frac{(x-1)^2}{2x(x+1)^2}$ of the exponent by $x = v''/v'$.

    Assumes: $x \ge 1$.

    Args:
        ratio: $x$, of any shape.

    Example:
        >>> exponent_slope([1.0, 3.0])
        array([0.        , 0.04166667])
    """
    x = _ratios(ratio)
    return np.asarray((x - 1) ** 2 / (2 * x * (x + 1) ** 2))


def exponent_gap_limit(beta: Numbers) -> float:
    r"""Limit of the exponent of a plain less that of a residual network in depth.

    Both grow like half the logarithm of their typical path length, p and
    $p\beta/(1+\beta)$, so that the gap tends to $\frac12\log\frac{1+\beta}{\beta}$.

    Assumes: path weights $\binom{p-1}{r-1}\beta^r$, depth p to infinity.

    Args:
        beta: Scale of a branch, above 0.

    Example:
        >>> round(exponent_gap_limit(0.5), 6)
        0.549306
    """
    scale = float(as_numbers("beta", beta))
    if not scale > 0:
        raise ConfigError(f"beta is {beta!r}: pass a positive number")
    return 0.5 * math.log1p(1 / scale)


def _ratios(ratio: Numbers) -> np.ndarray:
    x = np.asarray(as_numbers("ratio", ratio, ...))
    if not (x >= 1 - 1e-12).all():
        raise ConfigError(
            f"v''/v' is {x.min():.6g}, and {_TASK} needs 1 or more: drop the order 1 "
            "of the mixture"
        )
    return np.asarray(np.maximum(x, 1.0))
