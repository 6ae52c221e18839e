r"""What a mixture of interactions says of the field: covariance and two derivatives.

The energy of a spherical spin glass is Gaussian on $S^{\Lambda-1}(\sqrt\Lambda)$,
with covariance $\Lambda\,\nu(q)$ at overlap $q = w \cdot w' / \Lambda$, where
$\nu(q) = \sum_r \epsilon_r^2 q^r$; all that counts critical points is in its
derivatives at 1.

Notation: $v' = \nu'(1)$, $v'' = \nu''(1)$, $x = v''/v'$.
"""

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
    require_kind,
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
    r"""Definition 3: $v'$, $v''$ and $\alpha^2$ of a mixture.

    Assumes: squared weights that sum to one, orders from 1 up.

    Args:
        mixture: $\epsilon_r^2$ by order.

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
    require_kind(blueprint, SpinGlassBlueprint, task="this closed form")
    shares = np.asarray(as_numbers("overlap", overlap, ...))
    orders, weights = _columns(as_mixture(blueprint.mixture))
    return blueprint.width * (shares[..., None] ** orders) @ weights


def network_mixture(weights: Numbers, *, least: int = 2) -> Mixture:
    r"""Mixture of a residual network: squares of its path weights, short paths dropped.

    What is left is divided by its sum, which changes neither $v''/v'$ nor anything
    that depends on it alone.

    Assumes: weights in order of path length, from length 1 up.

    Args:
        weights: $\epsilon_1, \dots, \epsilon_p$, up to a common factor.
        least: Smallest order kept.

    Example:
        >>> network_mixture([5.0, 1.0, 1.0])
        ((2, 0.5), (3, 0.5))
    """
    found = as_numbers("weights", weights, "lengths")
    squares = found[least - 1 :] ** 2
    if not squares.sum() > 0:
        raise ConfigError(
            f"{found.size} path weights leave nothing from length {least} up: pass a "
            f"network of depth {least} or more"
        )
    shares = squares / squares.sum()
    kept = np.flatnonzero(shares)  # of deep networks a narrow band
    pairs = zip((kept + least).tolist(), shares[kept].tolist(), strict=True)
    return as_mixture(pairs)


def _columns(mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    orders, weights = zip(*mixture, strict=True)
    return np.array(orders, float), np.array(weights)
