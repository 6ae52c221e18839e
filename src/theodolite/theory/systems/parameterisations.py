r"""Parameterised matrices (plain, weight norm, entry norm): derivatives and bounds.

Notation: w parameters, P(w) the matrix, $\epsilon$ what keeps it smooth at $w = 0$.
"""

import math
from dataclasses import dataclass, fields

import numpy as np

from theodolite.core import (
    AffineLayer,
    ConfigError,
    ConvolutionLayer,
    Numbers,
    as_numbers,
)

# sup |D²P| times ε, of both normalisations: |en''| = 3ε|w|(ε + w²)^(-5/2) is largest at
# w² = ε/4. D²wn is a symmetric trilinear form, whose norm is its supremum over equal
# arguments; along w that is the same function of ‖w‖, and across it stays below.
NORMALISED_CURVATURE = 1.5 * 0.8**2.5


@dataclass(frozen=True, kw_only=True)
class ParameterBall:
    r"""Where the parameters of a layer may lie; everywhere by default.

    Attributes:
        radius: Greatest distance from the centre.
        weight: Largest singular value of the centre's raw weights; of a batch norm,
            its largest scale in magnitude.
        bias: Norm of the centre's bias.
        length: Norm of the lengths g at the centre.
        floor: Shortest direction at the centre; of a batch norm that holds its
            statistics, the smallest standard deviation.
        shift: Largest mean in magnitude that a batch norm holds.
    """

    radius: float = math.inf
    weight: float = 0.0
    bias: float = 0.0
    length: float = 0.0
    floor: float = 0.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, float(getattr(self, one.name)))
        if not self.radius >= 0:
            raise ConfigError(
                f"radius is {self.radius!r}: pass a number from 0 up, or math.inf for "
                "all of parameter space"
            )


@dataclass(frozen=True)
class ParameterisationBounds:
    r"""Bounds of a parameterised matrix over a ball of parameters.

    Attributes:
        value: Bound of $\|P(w)\|_2$.
        row: Bound of the norm of a row.
        slope: Bound of $\|DP\|$.
        curvature: Bound of $\|D^2P\|$, a Lipschitz constant of DP.
        why: Why one of them is infinite; else empty.
    """

    value: float
    row: float
    slope: float
    curvature: float
    why: str = ""


def parameterisation_bounds(
    layer: AffineLayer | ConvolutionLayer, ball: ParameterBall | None = None
) -> ParameterisationBounds:
    r"""Return bounds of a layer's matrix, its factor included, and its derivatives.

    For rows or entries over $\sqrt{\epsilon + \cdot}$: $\|DP\| \le \epsilon^{-1/2}$ and
    $\|D^2P\| \le 1.5 \cdot 0.8^{5/2} / \epsilon$ everywhere, and
    $\|P\|_F^2 \le n\rho^2/(n\epsilon + \rho^2)$ for n rows or entries and
    $\|w\| \le \rho$, by concavity.

    Assumes: parameters in the ball, all of parameter space by default.

    References:
        MacDonald et al. (2023), lemma B.3, with explicit constants.

    Example:
        >>> layer = AffineLayer(into=2, out=4, parameterisation="weight_norm", eps=0.5)
        >>> bounds = parameterisation_bounds(layer)
        >>> bounds.value, round(bounds.slope, 6), round(bounds.curvature, 6)
        (2.0, 1.414214, 1.7173)
    """
    ball, k = ball or ParameterBall(), layer.scale
    if layer.parameterisation == "plain":
        size = k * (ball.weight + ball.radius)
        why = "" if size < math.inf else "its weights are unbounded"
        return ParameterisationBounds(size, size, k, 0.0, why)
    if layer.parameterisation == "length_direction":
        return _length_direction(ball, k)
    return _normalised(layer, ball, k)


def _normalised(
    layer: AffineLayer | ConvolutionLayer, ball: ParameterBall, k: float
) -> ParameterisationBounds:
    columns = layer.columns
    by_row = layer.parameterisation == "weight_norm"
    pieces = layer.out if by_row else layer.out * columns
    slope = layer.eps**-0.5
    shortest = min(layer.out, columns)
    away = (ball.weight * math.sqrt(shortest) + ball.radius) ** 2  # of ‖w‖²
    squared = _concave(pieces, away, layer.eps)
    row = _concave(1 if by_row else columns, away, layer.eps)
    return ParameterisationBounds(
        k * math.sqrt(squared),
        k * math.sqrt(row),
        k * slope,
        k * NORMALISED_CURVATURE / layer.eps,
    )


def _concave(pieces: int, away: float, eps: float) -> float:
    """Return the largest sum of n terms s/(ε + s) where the s sum to ``away``."""
    return pieces / (1 + pieces * eps / away) if away > 0 else 0.0


def _length_direction(ball: ParameterBall, k: float) -> ParameterisationBounds:
    length, floor = ball.length + ball.radius, ball.floor - ball.radius
    if not floor > 0:
        why = "a direction of its weight norm may vanish, which has no eps"
        return ParameterisationBounds(k * length, k * length, math.inf, math.inf, why)
    # dg moves P along the row by |dg|, dv across it by |g||dv|/‖v‖ at most.
    mixed, twice = 1 / floor, 2 * length / (math.sqrt(3.0) * floor**2)
    curvature = twice / 2 + math.hypot(twice / 2, mixed)
    slope = max(1.0, length / floor)
    return ParameterisationBounds(k * length, k * length, k * slope, k * curvature)


def weight_norm_derivatives(
    weights: Numbers, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return first and second derivatives of row-wise weight normalisation.

    Returns:
        $\partial P_{ij}/\partial w_{il}$, shape (rows, columns, columns), and
        $\partial^2 P_{ij}/\partial w_{in}\partial w_{il}$, shape (rows, columns,
        columns, columns); between rows they vanish.

    References:
        MacDonald et al. (2023), equations 30 and 31.

    Example:
        >>> first, _ = weight_norm_derivatives([[0.3, -0.7, 1.1]], 0.2)
        >>> np.linalg.svd(first[0], compute_uv=False).round(8)
        array([0.70888121, 0.70888121, 0.07124434])
    """
    w = as_numbers("weights", weights, "rows", "columns")
    eps = _positive(eps)
    q = (eps + (w**2).sum(1))[:, None, None]
    eye = np.eye(w.shape[1])
    first = q**-0.5 * (eye - w[:, :, None] * w[:, None, :] / q)
    cube = w[:, :, None, None] * w[:, None, :, None] * w[:, None, None, :]
    sums = (
        np.einsum("jl,in->ijln", eye, w)
        + np.einsum("nl,ij->ijln", eye, w)
        + np.einsum("nj,il->ijln", eye, w)
    )
    q = q[..., None]
    return first, q**-1.5 * (3 * cube / q - sums)


def entry_norm_derivatives(
    weights: Numbers, eps: float, *, printed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return first and second derivatives of entry normalisation, entry by entry.

    $\epsilon(\epsilon + w^2)^{-3/2}$ and $-3\epsilon w(\epsilon + w^2)^{-5/2}$; all
    others vanish. The second has exponent $-3/2$ in print.

    Args:
        weights: Parameters, any shape.
        eps: $\epsilon > 0$.
        printed: Whether the second is the paper's as printed.

    References:
        MacDonald et al. (2023), equations 32 and 33.

    Example:
        >>> [float(one[0].round(8)) for one in entry_norm_derivatives([2.0], 0.5)]
        [0.05237828, -0.06983771]
    """
    w, eps = as_numbers("weights", weights, "entries", ...), _positive(eps)
    q = eps + w**2
    return eps * q**-1.5, -3 * eps * w * q ** (-1.5 if printed else -2.5)


def centred_norm_derivatives(
    rows: Numbers, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return first and second derivatives of batch norm after centring.

    $v(Y) = \sqrt N\, Y (N\epsilon + \|Y\|_{row}^2)^{-1/2}$, which is $\sqrt N$ times
    weight normalisation with $N\epsilon$; batch norm is $v$ of the centred rows.

    Returns:
        Shapes (features, N, N) and (features, N, N, N).

    References:
        MacDonald et al. (2023), equations 27 and 28.

    Example:
        >>> first, _ = centred_norm_derivatives([[0.0, 0.0]], 0.25)
        >>> first[0]
        array([[2., 0.],
               [0., 2.]])
    """
    y = as_numbers("rows", rows, "features", "samples")
    count = y.shape[1]
    first, second = weight_norm_derivatives(y, count * _positive(eps))
    return math.sqrt(count) * first, math.sqrt(count) * second


def _positive(eps: float) -> float:
    if isinstance(eps, bool) or not 0 < eps < math.inf:
        raise ConfigError(f"eps is {eps!r}: pass a positive number, as 1.0")
    return float(eps)
