r"""Bounds of a system, composed from those of its layers.

Notation: $F = f_L \circ \dots \circ f_1$ at the data; $d_i \ge \|\partial_i F\|$ and
$h_{ij} \ge \|\partial_i \partial_j F\|$ for the parameters of the i-th and j-th layers
that have any.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from theodolite.core import (
    ConfigError,
    ResidualLayer,
    SystemBlueprint,
    SystemLayer,
)

from .parameterisations import ParameterBall
from .single_layer_bounds import Extent, LayerBounds, elementary_bounds

# One ball per layer, and for a residual block a tuple of them, in the order applied.
Balls = Sequence[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemBounds:
    r"""Bounds of a parameter-function map F and of its derivatives.

    Attributes:
        groups: Names of the layers that have parameters, such as ``2.branch.0``.
        slopes: $d_i$, of $\|\partial_i F\|$.
        curvatures: $h_{ij}$, of $\|\partial_i\partial_j F\|$.
        layers: Bounds of each layer at its place in the chain.
        outputs: Bounds of the outputs of F.
        reasons: Why a bound is infinite, one sentence per layer.
    """

    groups: tuple[str, ...]
    slopes: np.ndarray
    curvatures: np.ndarray
    layers: tuple[LayerBounds, ...]
    outputs: Extent
    reasons: tuple[str, ...]

    @property
    def derivative(self) -> float:
        r"""Bound of $\|DF\|$."""
        return _length(self.slopes)

    @property
    def derivative_lipschitz(self) -> float:
        """Lipschitz constant of DF."""
        return spectral_bound(self.curvatures)

    def smoothness(self, gradient: float, curvature: float) -> float:
        r"""Return $\beta$, a Lipschitz constant of the gradient of $\gamma \circ F$.

        $\beta = \|g_2\,dd^\top + g_1 h\|_2$.

        Args:
            gradient: $g_1 \ge \|\nabla\gamma\|$ on the outputs.
            curvature: $g_2 \ge \|\nabla^2\gamma\|$ there.
        """
        if not np.isfinite([gradient, curvature]).all():
            return math.inf
        outer = times_all(self.slopes[:, None], self.slopes[None])
        with np.errstate(over="ignore", invalid="ignore"):
            whole = times_all(curvature, outer) + times_all(gradient, self.curvatures)
        return spectral_bound(whole)


def system_bounds(
    blueprint: SystemBlueprint, inputs: Extent, balls: Balls | None = None
) -> SystemBounds:
    r"""Return bounds of a system's map, its derivative and Lipschitz constants.

    Behind a layer f, $\partial_i F$ becomes $Jf\,\partial_i F$ and
    $\partial_i\partial_j F$ becomes
    $Jf\,\partial_i\partial_j F + J^2f(\partial_i F, \partial_j F)$; the layer's own
    parameters add Df, its mixed derivative times $\partial_i F$, and its second one. A
    residual block adds its input to the output of its branch.

    Assumes: a ``SystemBlueprint``, inputs in the extent and parameters in the balls,
    all of parameter space by default: one ball per layer, a tuple of them for a
    residual block. Where a layer's slope or curvature is unbounded, so is the result.

    References:
        MacDonald et al. (2023), proposition 4.3 and lemma B.1.

    Example:
        >>> from theodolite.core import normalised_residual
        >>> from theodolite.theory import extent_of
        >>> plan = normalised_residual(inputs=2, widths=(2,))
        >>> bounds = system_bounds(plan, extent_of([[1.0, 0.0], [0.0, 1.0]]))
        >>> bounds.derivative, round(bounds.derivative_lipschitz, 6)
        (1.0, 0.85865)
    """
    if inputs.shape != blueprint.shapes[0]:
        raise ConfigError(
            f"inputs of shape {inputs.shape} came to a system for samples of shape "
            f"{blueprint.shapes[0]}: reshape the data"
        )
    jet = _Jet(inputs.tightened(), np.zeros(0), np.zeros((0, 0)), (), ())
    layers = []
    for place, layer in enumerate(blueprint.layers):
        ball = _ball(balls, place, len(blueprint.layers))
        layers.append(layer_bounds(layer, jet.extent, ball))
        jet = _behind(layer, jet, ball, str(place))
    return SystemBounds(
        groups=jet.groups,
        slopes=jet.slopes,
        curvatures=jet.curvatures,
        layers=tuple(layers),
        outputs=jet.extent,
        reasons=jet.reasons,
    )


def layer_bounds(
    layer: SystemLayer, inputs: Extent, ball: ParameterBall | Balls | None = None
) -> LayerBounds:
    r"""Return bounds of a layer, its derivatives, and their Lipschitz constants.

    Assumes: inputs in the extent and parameters in the ball, all of parameter space by
    default. The parameters of a residual block are one vector; its ball is a tuple, one
    per layer of the branch.

    References:
        MacDonald et al. (2023), theorem 4.5 with lemmas B.2 and B.3.

    Example:
        >>> from theodolite.core import NonlinearLayer
        >>> bounds = layer_bounds(
        ...     NonlinearLayer(activation="tanh"), Extent(samples=3, shape=(2,))
        ... )
        >>> bounds.outputs.entries, bounds.input_slope
        (1.0, 1.0)
    """
    if not isinstance(layer, ResidualLayer):
        one = ball if isinstance(ball, ParameterBall) else ParameterBall()
        return elementary_bounds(layer, inputs, one)
    # The inputs count as a first group of parameters, on which the identity acts.
    jet = _Jet(inputs, np.ones(1), np.zeros((1, 1)), ("inputs",), ())
    jet = _behind(layer, jet, ball, "")
    return LayerBounds(
        outputs=jet.extent,
        input_slope=float(jet.slopes[0]),
        parameter_slope=_length(jet.slopes[1:]),
        input_curvature=float(jet.curvatures[0, 0]),
        mixed_curvature=_length(jet.curvatures[0, 1:]),
        parameter_curvature=spectral_bound(jet.curvatures[1:, 1:]),
        why="; ".join(jet.reasons),
    )


def spectral_bound(matrix: np.ndarray) -> float:
    """Return the norm of a symmetric matrix of bounds; infinite if an entry is."""
    if not matrix.size:
        return 0.0
    if not np.isfinite(matrix).all():
        return math.inf
    # Of entries from 0 up the row sums bound the norm too; rounding never beats them.
    largest = float(matrix.max())
    if not largest:
        return 0.0
    norm = float(np.linalg.norm(matrix / largest, 2))
    return largest * norm * (1 + 1e-12)


def times_all(a: Any, b: Any) -> np.ndarray:
    """Multiply arrays of bounds; zero times infinity is zero."""
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.multiply(a, b)
    return np.where(np.equal(a, 0) | np.equal(b, 0), 0.0, product)


@dataclass(frozen=True)
class _Jet:
    """Bounds of the value at a place in the chain, and of its derivatives."""

    extent: Extent
    slopes: np.ndarray
    curvatures: np.ndarray
    groups: tuple[str, ...]
    reasons: tuple[str, ...]


def _behind(layer: SystemLayer, jet: _Jet, ball: Any, name: str) -> _Jet:
    if isinstance(layer, ResidualLayer):
        return _behind_block(layer, jet, ball, name)
    one = ball if isinstance(ball, ParameterBall) else ParameterBall()
    own = elementary_bounds(layer, jet.extent, one)
    slopes = times_all(own.input_slope, jet.slopes)
    outer = times_all(jet.slopes[:, None], jet.slopes[None])
    curvatures = times_all(own.input_slope, jet.curvatures)
    curvatures = curvatures + times_all(own.input_curvature, outer)
    groups, reasons = jet.groups, jet.reasons
    if layer.parameters:
        mixed = times_all(own.mixed_curvature, jet.slopes)
        slopes = np.append(slopes, own.parameter_slope)
        curvatures = np.block(
            [[curvatures, mixed[:, None]], [mixed[None], own.parameter_curvature]]
        )
        groups = (*groups, name)
    if own.why:
        reasons = (*reasons, f"layer {name} ({layer.kind}): {own.why}")
    return _Jet(own.outputs, slopes, curvatures, groups, reasons)


def _behind_block(layer: ResidualLayer, jet: _Jet, ball: Any, name: str) -> _Jet:
    inner, before = jet, len(jet.slopes)
    for place, one in enumerate(layer.branch):
        label = f"{name}.branch.{place}" if name else f"branch.{place}"
        inner = _behind(one, inner, _ball(ball, place, len(layer.branch)), label)
    slopes, curvatures = inner.slopes.copy(), inner.curvatures.copy()
    slopes[:before] += jet.slopes
    curvatures[:before, :before] += jet.curvatures
    names = ("frobenius", "spectral", "sample", "entries")
    sums = {n: getattr(jet.extent, n) + getattr(inner.extent, n) for n in names}
    extent = replace(inner.extent, **sums).tightened()
    return replace(inner, extent=extent, slopes=slopes, curvatures=curvatures)


def _ball(balls: Any, place: int, count: int) -> Any:
    if balls is None or isinstance(balls, ParameterBall):
        return balls
    if len(balls) != count:
        raise ConfigError(
            f"{len(balls)} balls of parameters came for {count} layers: pass one per "
            "layer, and for a residual block a tuple of those of its branch"
        )
    return balls[place]


def _length(slopes: np.ndarray) -> float:
    if not np.isfinite(slopes).all():
        return math.inf
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(slopes))
