r"""Bounds of a layer of a system, and Lipschitz constants of its derivatives.

Notation: f the layer, $\theta$ its parameters, Z its inputs, one column per sample;
Jf and Df its derivatives by Z and by $\theta$; norms of maps are operator norms between
Frobenius norms.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConfigError,
    ConvolutionLayer,
    FlattenLayer,
    NonlinearLayer,
    Numbers,
    SystemLayer,
    as_integer,
    as_numbers,
)

from .nonlinearities import nonlinearity_bounds
from .parameterisations import (
    NORMALISED_CURVATURE,
    ParameterBall,
    parameterisation_bounds,
)


@dataclass(frozen=True, kw_only=True)
class Extent:
    """A set of inputs: all batches within these bounds.

    Attributes:
        samples: N.
        shape: Shape of a sample.
        frobenius: Bound of the Frobenius norm of the matrix of all samples.
        spectral: Bound of its largest singular value.
        sample: Bound of the norm of a sample.
        entries: Bound of the magnitude of an entry.
    """

    samples: int
    shape: tuple[int, ...]
    frobenius: float = math.inf
    spectral: float = math.inf
    sample: float = math.inf
    entries: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", as_integer("samples", self.samples, 1))
        for name in ("frobenius", "spectral", "sample", "entries"):
            value = float(getattr(self, name))
            if not value >= 0:
                raise ConfigError(f"{name} is {value!r}: pass a bound from 0 up")
            object.__setattr__(self, name, value)

    def tightened(self) -> "Extent":
        """Return the same set with each bound at most what the others imply."""
        features = math.prod(self.shape)
        sample = min(self.sample, self.frobenius, math.sqrt(features) * self.entries)
        entries = min(self.entries, sample)
        frobenius = min(self.frobenius, math.sqrt(self.samples) * sample)
        rank = min(self.samples, features)
        frobenius = min(frobenius, math.sqrt(rank) * self.spectral)
        spectral = min(self.spectral, frobenius)
        return replace(
            self,
            frobenius=frobenius,
            spectral=spectral,
            sample=min(sample, spectral),
            entries=min(entries, spectral),
        )


def extent_of(data: Numbers) -> Extent:
    """Return the smallest extent of some data, samples along the first axis.

    Example:
        >>> extent_of([[3.0, 4.0], [0.0, 0.0]]).sample
        5.0
    """
    x = as_numbers("data", data, "samples", ...)
    if x.ndim < 2 or not x.size:
        raise ConfigError(
            f"data has shape {x.shape}: pass samples along the first axis and their "
            "features along the others"
        )
    flat = x.reshape(len(x), -1)
    with np.errstate(over="ignore"):  # squares that overflow count as unbounded
        return Extent(
            samples=len(x),
            shape=x.shape[1:],
            frobenius=float(np.linalg.norm(flat)),
            spectral=float(np.linalg.norm(flat, 2)),
            sample=float(np.linalg.norm(flat, axis=1).max()),
            entries=float(np.abs(flat).max()),
        )


@dataclass(frozen=True, kw_only=True)
class LayerBounds:
    r"""Bounds of a layer on a set of parameters and inputs.

    Attributes:
        outputs: Bounds of its outputs.
        input_slope: Bound of $\|Jf\|$, and Lipschitz constant of f in Z.
        parameter_slope: Bound of $\|Df\|$, and Lipschitz constant of f in $\theta$.
        input_curvature: Lipschitz constant of Jf in Z.
        mixed_curvature: Of Jf in $\theta$, and of Df in Z.
        parameter_curvature: Of Df in $\theta$.
        why: Why one of them is infinite; else empty.
    """

    outputs: Extent
    input_slope: float
    parameter_slope: float = 0.0
    input_curvature: float = 0.0
    mixed_curvature: float = 0.0
    parameter_curvature: float = 0.0
    why: str = ""

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant of f in parameters and inputs together."""
        return math.hypot(self.input_slope, self.parameter_slope)


def elementary_bounds(
    layer: SystemLayer, inputs: Extent, ball: ParameterBall
) -> LayerBounds:
    """Return the bounds of a layer that is not a residual block."""
    if isinstance(layer, AffineLayer | ConvolutionLayer):
        return _weighted(layer, inputs, ball)
    if isinstance(layer, NonlinearLayer):
        return _nonlinear(layer, inputs)
    if isinstance(layer, BatchNormLayer):
        return _batch_norm(layer, inputs, ball)
    if isinstance(layer, FlattenLayer):
        shape = layer.shape_after(inputs.shape)
        return LayerBounds(outputs=replace(inputs, shape=shape), input_slope=1.0)
    raise ConfigError(
        f"a layer of type {type(layer).__name__} has no known bounds: use the kinds "
        "of layers that core exports"
    )


def times(a: float, b: float) -> float:
    """Multiply bounds; zero times infinity is zero."""
    return 0.0 if a == 0 or b == 0 else a * b


def _weighted(
    layer: AffineLayer | ConvolutionLayer, inputs: Extent, ball: ParameterBall
) -> LayerBounds:
    matrix = parameterisation_bounds(layer, ball)
    bias = ball.bias + ball.radius if layer.bias else 0.0
    shape = layer.shape_after(inputs.shape)
    if isinstance(layer, AffineLayer):
        unfold, patch, patches = 1.0, inputs.sample, inputs.spectral
    else:
        # The kernel as a matrix, one row per output channel, times the matrix of
        # patches, a linear map of the image: a pixel lies in ``overlap`` of them.
        unfold = math.sqrt(layer.overlap)
        patch = min(inputs.sample, math.sqrt(layer.columns) * inputs.entries)
        patches = unfold * inputs.frobenius
    n, places = math.sqrt(inputs.samples), math.sqrt(math.prod(shape[1:]))
    value = matrix.value * unfold
    outputs = Extent(
        samples=inputs.samples,
        shape=shape,
        frobenius=times(value, inputs.frobenius) + n * places * bias,
        spectral=times(value, inputs.spectral) + n * places * bias,
        sample=times(value, inputs.sample) + places * bias,
        entries=times(matrix.row, patch) + bias,
    )
    own = n * places if layer.bias else 0.0
    return LayerBounds(
        outputs=outputs.tightened(),
        input_slope=value,
        parameter_slope=math.hypot(times(matrix.slope, patches), own),
        mixed_curvature=matrix.slope * unfold,
        parameter_curvature=times(matrix.curvature, patches),
        why=_unbounded(matrix.why, bias),
    )


def _nonlinear(layer: NonlinearLayer, inputs: Extent) -> LayerBounds:
    curve = nonlinearity_bounds(layer.activation, inputs.entries)
    features, n = math.sqrt(math.prod(inputs.shape)), math.sqrt(inputs.samples)
    start = curve.at_zero
    outputs = Extent(
        samples=inputs.samples,
        shape=inputs.shape,
        frobenius=times(curve.slope, inputs.frobenius) + start * features * n,
        sample=times(curve.slope, inputs.sample) + start * features,
        entries=min(curve.value, times(curve.slope, inputs.entries) + start),
    )
    return LayerBounds(
        outputs=outputs.tightened(),
        input_slope=curve.slope,
        input_curvature=curve.curvature,
        why=curve.why,
    )


def _batch_norm(
    layer: BatchNormLayer, inputs: Extent, ball: ParameterBall
) -> LayerBounds:
    count = inputs.samples * math.prod(inputs.shape[1:])
    rows, features = math.sqrt(count), math.sqrt(layer.features)
    scale, bias = 1.0, 0.0
    if layer.affine:
        scale, bias = ball.weight + ball.radius, ball.bias + ball.radius
    if layer.statistics == "batch":
        # √M times weight normalisation with Mε of the centred rows, of M numbers each;
        # a normalised row is across the row of ones, and no longer than it.
        slope = layer.eps**-0.5
        size, entries = min(rows * features, slope * inputs.frobenius), rows
        curvature, own = NORMALISED_CURVATURE / (layer.eps * rows), rows
    else:
        # ball.floor is the smallest √(ε + variance) held.
        slope = 1 / max(ball.floor, math.sqrt(layer.eps))
        size = (inputs.frobenius + rows * features * ball.shift) * slope
        entries = (inputs.entries + ball.shift) * slope
        curvature, own = 0.0, math.hypot(size, rows)
    outputs = Extent(
        samples=inputs.samples,
        shape=inputs.shape,
        frobenius=times(scale, size) + rows * bias,
        entries=times(scale, entries) + bias,
    )
    return LayerBounds(
        outputs=outputs.tightened(),
        input_slope=times(scale, slope),
        parameter_slope=own if layer.affine else 0.0,
        input_curvature=times(scale, curvature),
        mixed_curvature=slope if layer.affine else 0.0,
        why=_unbounded("", scale + bias),
    )


def _unbounded(why: str, bias: float) -> str:
    if why or bias < math.inf:
        return why
    return "its biases or scales are unbounded"
