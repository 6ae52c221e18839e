"""Spherical mixed spin glasses: random polynomials on a sphere."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar, final

from ..errors import ConfigError
from .description import Blueprint, check_integers

# Shares of the variance by order of interaction, r to ε_r², in order of r.
Mixture = tuple[tuple[int, float], ...]
# Forms in which users may pass it. Where types are checked at run time it allows
# anything: ``as_mixture`` checks every call, and its error says what is wrong.
if TYPE_CHECKING:
    MixtureLike = Mapping[int, float] | Iterable[tuple[int, float]]
else:
    MixtureLike = object

# How far from one the shares may sum: rounding of a few thousand of them.
_SUM_ERROR = 1e-9


@final
@dataclass(frozen=True, kw_only=True)
class SpinGlassBlueprint(Blueprint):
    r"""A spherical spin glass with interactions of several orders.

    Its energy at $w \in R^\Lambda$ is
    $-\sum_r \epsilon_r \Lambda^{-(r-1)/2} \sum J^r_{i_1 \dots i_r} w_{i_1} \cdots
    w_{i_r}$ with independent standard normal couplings $J$, so that on the sphere
    $\sum w_i^2 = \Lambda$ its variance is $\Lambda$.

    Attributes:
        width: $\Lambda$, the dimension of points, from 2 up.
        mixture: $\epsilon_r^2$ by order r from 1 up, which sum to one; a mapping or
            pairs, kept as pairs in order of r without those of weight zero.
        depth: Greatest order of the mixture; computed.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, eqs. (5), (26).

    Example:
        >>> glass = SpinGlassBlueprint(width=3, mixture={2: 0.25, 4: 0.75})
        >>> glass.mixture, glass.depth, glass.units, glass.parameters
        (((2, 0.25), (4, 0.75)), 4, 2, 21)
    """

    kind: ClassVar[str] = "spherical spin glass"

    mixture: MixtureLike
    depth: int = 0

    def __post_init__(self) -> None:
        check_integers(self, "width")
        if self.width < 2:
            raise ConfigError(
                f"width is {self.width}: a sphere in fewer than 2 dimensions has no "
                "directions; pass a whole number from 2 up"
            )
        mixture = as_mixture(self.mixture)
        greatest = mixture[-1][0]
        if self.depth not in (0, greatest):
            raise ConfigError(
                f"depth is {self.depth!r}, and the greatest order of the mixture is "
                f"{greatest}: leave depth out"
            )
        object.__setattr__(self, "mixture", mixture)
        object.__setattr__(self, "depth", greatest)

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders of interaction that have a weight."""
        return tuple(r for r, _ in as_mixture(self.mixture))

    @property
    def units(self) -> int:
        """Number of orders of interaction."""
        return len(self.orders)

    @property
    def parameters(self) -> int:
        """Number of independent couplings: one per monomial of each order."""
        return sum(math.comb(self.width + r - 1, r) for r in self.orders)


def as_mixture(mixture: object, *, least: int = 1, task: str = "") -> Mixture:
    r"""Return checked pairs of order and $\epsilon_r^2$, without weights of zero.

    Args:
        mixture: Mapping of order to weight, or pairs.
        least: Smallest order that the task takes.
        task: What needs that order, in words.

    Example:
        >>> as_mixture({3: 0.5, 2: 0.5})
        ((2, 0.5), (3, 0.5))
    """
    weights: dict[int, float] = {}
    for order, weight in _pairs(mixture):
        if order in weights:
            raise ConfigError(f"the mixture has order {order} twice: add the weights")
        weights[order] = weight
    kept = tuple(sorted((r, w) for r, w in weights.items() if w > 0))
    total = math.fsum(weight for _, weight in kept)
    if abs(total - 1) > _SUM_ERROR:
        raise ConfigError(
            f"the mixture {_short(kept)} sums to {total:.10g}: pass squared weights "
            "that sum to 1"
        )
    if kept[0][0] < least:
        raise ConfigError(
            f"the mixture has order {kept[0][0]} with weight {kept[0][1]:.4g}, and "
            f"{task} needs orders from {least} up: drop it and divide the others by "
            "their sum"
        )
    return kept


def _pairs(mixture: object) -> list[tuple[int, float]]:
    items = mixture.items() if isinstance(mixture, Mapping) else mixture
    try:
        pairs = [(order, weight) for order, weight in items]  # pyright: ignore
    except (TypeError, ValueError):
        raise ConfigError(
            f"the mixture {mixture!r} is no table of weights by order: pass for "
            "instance {2: 0.5, 3: 0.5}"
        ) from None
    for order, weight in pairs:
        if isinstance(order, bool) or not isinstance(order, Integral) or order < 1:
            raise ConfigError(
                f"the mixture has order {order!r}: pass whole numbers from 1 up"
            )
        real = isinstance(weight, Real) and not isinstance(weight, bool)
        if not real or not 0 <= float(weight) < math.inf:
            raise ConfigError(
                f"the mixture has weight {weight!r} at order {order}: pass squares, "
                "real numbers from 0 up"
            )
    return [(int(order), float(weight)) for order, weight in pairs]


def _short(mixture: Mixture) -> str:
    shown = ", ".join(f"{r}: {w:.4g}" for r, w in mixture[:4])
    return f"{{{shown}{', …' if len(mixture) > 4 else ''}}}"
