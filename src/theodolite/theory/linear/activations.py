r"""Activations as functions of arrays, with the derivatives that theory needs.

Notation: $\sigma'$, $\sigma''$ first and second derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from theodolite.core import as_numbers, parse_activation

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Activation:
    r"""An elementwise function.

    Attributes:
        value: $\sigma(z)$.
        slope: $\sigma'(z)$.
        at_zero: $\sigma(0)$.
        slope_at_zero: $\sigma'(0)$.
        curvature_at_zero: $\sigma''(0)$; None where it does not exist.

    Both functions take real numbers of any type and shape, and return float64.
    """

    value: Map
    slope: Map
    at_zero: float
    slope_at_zero: float
    curvature_at_zero: float | None

    def __post_init__(self) -> None:
        for name in ("value", "slope"):
            object.__setattr__(self, name, _gated(getattr(self, name)))


def activation(spec: str) -> Activation:
    r"""Return the activation of a name that blueprints use.

    For ReLU, $\sigma'(0)$ is $\tfrac12$: the slope of the least-squares line on any
    interval $[-\delta, \delta]$. The second derivative does not exist: the best
    quadratic on that interval has curvature $15/(16\delta)$.

    References:
        Li et al. (2016), Demystifying ResNet, assumption 3 and the remark after it.

    Example:
        >>> activation("relu").slope_at_zero
        0.5
    """
    name, coefficients = parse_activation(spec)
    if name == "polynomial":
        return _polynomial(coefficients)
    return _TABLE[name]


def _polynomial(coefficients: tuple[float, ...]) -> Activation:
    curve = np.polynomial.Polynomial([0.0, *coefficients])
    slope = curve.deriv()
    return Activation(curve, slope, 0.0, float(slope(0.0)), float(slope.deriv()(0.0)))


def _gated(curve: Map) -> Map:
    """Return a function that converts its argument to float64 first."""
    # Infinity and NaN pass: the network may have overflowed before.
    return lambda z: curve(as_numbers("z", z, ..., finite=False))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(z / 2))


_TABLE = {
    "identity": Activation(lambda z: z, np.ones_like, 0.0, 1.0, 0.0),
    "relu": Activation(
        lambda z: np.maximum(z, 0.0), lambda z: (z > 0) * 1.0, 0.0, 0.5, None
    ),
    "tanh": Activation(np.tanh, lambda z: 1 - np.tanh(z) ** 2, 0.0, 1.0, 0.0),
    "symmetric_sigmoid": Activation(
        lambda z: np.tanh(z / 2),
        lambda z: 0.5 * (1 - np.tanh(z / 2) ** 2),
        0.0,
        0.5,
        0.0,
    ),
    "silu": Activation(
        lambda z: z * _sigmoid(z),
        lambda z: _sigmoid(z) * (1 + z * (1 - _sigmoid(z))),
        0.0,
        0.5,
        0.5,
    ),
    "exp": Activation(np.exp, np.exp, 1.0, 1.0, 1.0),
}
