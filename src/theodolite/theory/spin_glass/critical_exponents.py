r"""Mixtures of interactions, and how fast their critical points multiply.

The energy of a spherical spin glass is Gaussian on $S^{\Lambda-1}(\sqrt\Lambda)$,
with covariance $\Lambda\,\nu(q)$ at overlap $q = w \cdot w' / \Lambda$, where
$\nu(q) = \sum_r \epsilon_r^2 q^r$; the number of critical points depends only on its
derivatives at 1. Notation: $v' = \nu'(1)$, $v'' = \nu''(1)$, $x = v''/v'$.

The mean number of critical points grows like $e^{\Lambda\theta_k}$ with dimension:
$\theta_k = f(x) = \frac12\log x - \frac{x-1}{x+1}$, for every fixed index $k \ge 0$.
Since $f'(x) = \frac{(x-1)^2}{2x(x+1)^2} \ge 0$, f rises strictly, and since x is the
mean of r − 1 under the weights $\epsilon_r^2 r$, it is largest, p − 1, where all weight
is on the greatest order p. That proves theorem 5.
"""

import math
from dataclasses import dataclass

import numpy as np

from theodolite.core import (
    ConfigError,
    Mixture,
    MixtureLike,
    Numbers,
    SpinGlassBlueprint,
    as_mixture,
    as_numbers,
)


@dataclass(frozen=True, kw_only=True)
class MixtureMoments:
    r"""Derivatives of the covariance at equal points.

    Attributes:
        first: $v' = \sum \epsilon_r^2 r$.
        second: $v'' = \sum \epsilon_r^2 r(r-1)$.
        spread: $\alpha^2 = v'' + v' - v'^2$, the variance of r under $\epsilon_r^2$;
            zero for a single order.
    """

    first: float
    second: float
    spread: float

    @property
    def ratio(self) -> float:
        r"""$x = v''/v'$: the mean of r − 1 under weights $\epsilon_r^2 r$."""
        return self.second / self.first


def mixture_moments(mixture: MixtureLike) -> MixtureMoments:
    r"""Return $v'$, $v''$ and $\alpha^2$ (definition 3) of $\epsilon_r^2$ by order.

    Assumes: squared weights that sum to one, orders from 1 up.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, eq. (29).

    Example:
        >>> mixture_moments({2: 0.5, 3: 0.5})
        MixtureMoments(first=2.5, second=4.0, spread=0.25)
    """
    orders, weights = _columns(as_mixture(mixture))
    first = float(weights @ orders)
    # About the mean, so that a single order has a spread of zero to the last digit.
    spread = float(weights @ (orders - first) ** 2)
    second = float(weights @ (orders * (orders - 1)))
    return MixtureMoments(first=first, second=second, spread=spread)


def energy_covariance(blueprint: SpinGlassBlueprint, overlap: Numbers) -> np.ndarray:
    r"""Covariance $\Lambda \sum \epsilon_r^2 q^r$ of energies at points of overlap q.

    At $q = 1$ it is the variance, $\Lambda$ for every mixture.

    Assumes: SpinGlassBlueprint, points on the sphere of radius $\sqrt\Lambda$.

    Args:
        blueprint: Dimension and mixture.
        overlap: $q = w \cdot w' / \Lambda$, of any shape.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, eq. (28).

    Example:
        >>> glass = SpinGlassBlueprint(width=5, mixture={2: 0.5, 3: 0.5})
        >>> energy_covariance(glass, [1.0, 0.5, -1.0])
        array([5.    , 0.9375, 0.    ])
    """
    shares = np.asarray(as_numbers("overlap", overlap, ...))
    orders, weights = _columns(as_mixture(blueprint.mixture))
    return blueprint.width * (shares[..., None] ** orders) @ weights


def network_mixture(weights: Numbers, *, least: int = 2) -> Mixture:
    r"""Return the squared path weights of a residual network, from length ``least``.

    They are divided by their sum, which does not change $v''/v'$.

    Assumes: weights in order of path length, from length 1 up.

    Args:
        weights: $\epsilon_1, \dots, \epsilon_p$, up to a common factor.
        least: Smallest order kept.

    Example:
        >>> network_mixture([5.0, 1.0, 1.0])
        ((2, 0.5), (3, 0.5))
    """
    epsilons = as_numbers("weights", weights, "lengths")
    squares = epsilons[least - 1 :] ** 2
    if not squares.sum() > 0:
        raise ConfigError(
            f"{epsilons.size} path weights leave nothing from length {least} up: pass "
            f"a network of depth {least} or more"
        )
    shares = squares / squares.sum()
    kept = np.flatnonzero(shares)  # a narrow band in deep networks
    pairs = zip((kept + least).tolist(), shares[kept].tolist(), strict=True)
    return as_mixture(pairs)


def _columns(mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    orders, weights = zip(*mixture, strict=True)
    return np.array(orders, float), np.array(weights)


_TASK = "the asymptotic number of critical points"


def critical_exponent(mixture: MixtureLike) -> float:
    r"""Return the limit of $\frac1\Lambda \log$ of the mean number of critical points.

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
    r"""Return the exponent as a function of $x = v''/v'$, of any shape.

    Assumes: $x \ge 1$, as for all mixtures of orders from 2 up.

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
    r"""Return the derivative $\frac{(x-1)^2}{2x(x+1)^2}$ of the exponent by $x \ge 1$.

    Example:
        >>> exponent_slope([1.0, 3.0])
        array([0.        , 0.04166667])
    """
    x = _ratios(ratio)
    return np.asarray((x - 1) ** 2 / (2 * x * (x + 1) ** 2))


def exponent_gap_limit(beta: Numbers) -> float:
    r"""Return the limit, in depth, of plain minus residual exponent.

    Both grow like half the logarithm of their typical path length, p and
    $p\beta/(1+\beta)$, so that the gap tends to $\frac12\log\frac{1+\beta}{\beta}$.

    Assumes: path weights $\binom{p-1}{r-1}\beta^r$ with a branch scale $\beta > 0$.

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
