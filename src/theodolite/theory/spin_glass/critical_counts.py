r"""Mean numbers of critical points of a spherical spin glass, at finite dimension.

By Kac and Rice, on $S^{\Lambda-1}(\sqrt\Lambda)$: the tangent gradient is normal with
covariance $v'I$; the Hessian is $\sqrt{v''/\Lambda}\,G - (D/\sqrt\Lambda)\,I$ with $G$
of the Gaussian orthogonal ensemble of size $\Lambda - 1$ and $D = w\cdot\nabla H /
\sqrt\Lambda$ normal of variance $v' + v''$; gradient, G and D are independent. So

$E\,Crt_k = \frac{2\pi^{\Lambda/2}}{\Gamma(\Lambda/2)}
(\tfrac{x}{2\pi})^{(\Lambda-1)/2}\,E\,|\det(G - s)|\,1\{k \text{ eigenvalues} < s\}$

with $s = D/\sqrt{v''}$ of variance $(1+x)/x$. The determinant turns s into one more
eigenvalue, the (k+1)-th smallest of a matrix of size $\Lambda$, at the price of
$e^{s^2/4}$ and a ratio of normalisations; what is left is, exactly,

$E\,Crt_k = 2\sqrt2\,\frac{x^{\Lambda/2}}{\sqrt{1+x}}\;
E_{GOE(\Lambda)}\,e^{-c\,\lambda_{(k+1)}^2}$, $c = \frac{x-1}{4(x+1)}$.

Notation: $x = v''/v'$, the only number of the mixture that matters.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from theodolite.core import (
    ConfigError,
    Numbers,
    SpinGlassBlueprint,
    as_integer,
    as_numbers,
)

from .critical_exponents import mixture_moments
from .goe_sampling import sampled_mean
from .goe_spectrum import DEEPEST_INDEX, edge_mean, eigenvalue_density

# With fewer effective samples than this the error is unknown.
_FEWEST = 50
# Relative error of the quadrature of all indices.
_TOTAL_ERROR = 1e-12
# If the quadrature's error is larger than this, the number is sampled.
_LARGEST_ERROR = 1e-2


@dataclass(frozen=True, kw_only=True)
class MeanCount:
    """A mean number of critical points.

    Attributes:
        log: Its logarithm.
        error: Bound on the logarithm's error, or a standard error where it is sampled.
        method: How it was computed.
    """

    log: float
    error: float
    method: Literal["closed form", "quadrature", "sampling"]

    @property
    def value(self) -> float:
        """The number itself; infinity where it is too large to write."""
        return math.exp(self.log) if self.log < 700 else math.inf


def mean_critical_points(
    blueprint: SpinGlassBlueprint,
    *,
    index: int | None = None,
    below: Numbers | None = None,
    samples: int = 20_000,
    seed: int = 0,
    sampling: bool = False,
) -> MeanCount:
    r"""Return the mean number of critical points, exact at every dimension.

    For all indices it comes from the mean density of eigenvalues. For a given index it
    is a closed form at $\Lambda$ = 2 and 3, a quadrature of Pfaffians for the three
    smallest and three largest indices, and sampled for others or with ``sampling``.

    Assumes: SpinGlassBlueprint, couplings independent and normal, and for a given
    index beyond $\Lambda = 3$ mixtures with $v'' \ge v'$, as without order 1.

    Args:
        blueprint: Dimension and mixture.
        index: Number of negative eigenvalues of the Hessian; all by default.
        below: Count energies up to this many times $\Lambda$ only (u of definition 4);
            by sampling, and for a given index.
        samples: Number of samples, where it is sampled.
        seed: Seed of the samples.
        sampling: Whether to sample although a quadrature exists.

    References:
        Auffinger & Ben Arous (2013), Complexity of random smooth functions on the
        high-dimensional sphere; Littwin & Wolf (2016), definition 4.

    Example:
        >>> glass = SpinGlassBlueprint(width=3, mixture={3: 1.0})
        >>> round(mean_critical_points(glass).value, 8)
        10.55235974
        >>> round(mean_critical_points(glass, index=0).value, 8)
        3.13808994
    """
    n, x = blueprint.width, mixture_moments(blueprint.mixture).ratio
    if index is None:
        if below is not None:
            raise ConfigError(
                f"below={below!r} was passed without an index: pass index=…"
            )
        return _all(n, x)
    k = as_integer("index", index, 0)
    if k >= n:
        raise ConfigError(
            f"index is {k}, and a sphere in {n} dimensions has {n - 1} directions: "
            f"pass one from 0 to {n - 1}"
        )
    if below is not None or sampling:
        level = None if below is None else float(as_numbers("below", below))
        return _sampled(blueprint, k, level, samples, seed)
    # A glass and its negative have the same law; the sign turns index k to n − 1 − k.
    mirrored = min(k, n - 1 - k)
    if n <= 3:
        return _closed(n, x, mirrored)
    if mirrored <= DEEPEST_INDEX and _edge_error(n, x, mirrored) < _LARGEST_ERROR:
        return _quadrature(n, x, mirrored)
    return _sampled(blueprint, mirrored, None, samples, seed)


def _prefactor(n: int, x: float) -> float:
    return math.log(2 * math.sqrt(2)) + n / 2 * math.log(x) - math.log1p(x) / 2


def _tilt(n: int, x: float) -> float:
    if x < 1 - 1e-12:
        raise ConfigError(
            f"v''/v' is {x:.6g} in {n} dimensions, and a count by index needs 1 or "
            "more: drop order 1 of the mixture, or leave index out"
        )
    return max(0.0, (x - 1) / (4 * (x + 1)))


def _all(n: int, x: float) -> MeanCount:
    if n == 2:
        value = 2 * math.sqrt(3 * x + 1)
    elif n == 3:
        value = 2 + 8 * x**1.5 / math.sqrt(3 * x + 1)
    elif x == 0:  # order 1 alone: one minimum and one maximum
        value = 2.0
    else:
        _, weights, density = eigenvalue_density(n, tilt=(x - 1) / (4 * (x + 1)))
        log = _prefactor(n, x) + math.log(weights @ density)
        return MeanCount(log=log, error=_TOTAL_ERROR, method="quadrature")
    return MeanCount(log=math.log(value), error=1e-15, method="closed form")


def _closed(n: int, x: float, k: int) -> MeanCount:
    half = math.sqrt(3 * x + 1)
    if n == 3:
        turn = x**1.5 / half
        half = 1 + 2 * turn if k == 0 else 4 * turn
    if half == 0:
        return MeanCount(log=-math.inf, error=0.0, method="closed form")
    return MeanCount(log=math.log(half), error=1e-15, method="closed form")


def _quadrature(n: int, x: float, k: int) -> MeanCount:
    c = _tilt(n, x)

    def value(s: float) -> float:
        return math.exp(-c * s * s)

    def slope(s: np.ndarray) -> np.ndarray:
        return -2 * c * s * np.exp(-c * s * s)

    mean = edge_mean(n, k, slope, value)
    return MeanCount(
        log=_prefactor(n, x) + math.log(mean),
        error=_edge_error(n, x, k),
        method="quadrature",
    )


def _edge_error(n: int, x: float, k: int) -> float:
    r"""Return a bound on the relative error of the quadrature of an index.

    Rounding of the Pfaffians grows as they get small, with $4c\,n^{1/3}$: panels of
    other widths differ by a tenth of this or less, up to dimension 400 and $x = 10^4$.
    """
    return 10 ** (-12 + (1 + 0.2 * k) * 4 * _tilt(n, x) * n ** (1 / 3))


def _sampled(
    blueprint: SpinGlassBlueprint, k: int, below: float | None, samples: int, seed: int
) -> MeanCount:
    r"""Sample eigenvalues; energies are normal given $D = \sqrt{v''}\lambda$.

    $H/\sqrt\Lambda$ has mean $v'D/(v'+v'')$ and variance $\alpha^2/(v'+v'')$, since
    $w\cdot\nabla H = \sum r H_r$ for homogeneous parts $H_r$ of H.
    """
    n, moments = blueprint.width, mixture_moments(blueprint.mixture)
    c, total = _tilt(n, moments.ratio), moments.first + moments.second
    share = moments.first * math.sqrt(moments.second) / total
    spread = math.sqrt(moments.spread / total)

    def log_value(s: np.ndarray) -> np.ndarray:
        if below is None:
            return -c * s**2
        room = math.sqrt(n) * below - share * s
        if not spread:
            with np.errstate(divide="ignore"):
                return -c * s**2 + np.log((room >= 0).astype(float))
        return -c * s**2 + log_ndtr(room / spread)

    mean = sampled_mean(n, k, log_value, tilt=c, samples=samples, seed=seed)
    error = mean.error if mean.effective >= _FEWEST else math.inf
    log = _prefactor(n, moments.ratio) + mean.log
    return MeanCount(log=log, error=error, method="sampling")
