r"""Nonlinearities $\phi$ of systems: values, $\phi'$, $\phi''$, and bounds of each."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf, expit

from theodolite.core import (
    NONLINEARITIES,
    ConfigError,
    Numbers,
    as_numbers,
    unknown_name,
)

# The largest slopes of z·Φ(z), at √2, and of z·σ(z), where z·tanh(z/2) = 2; the last
# digit of the second one is rounded up.
_GELU_SLOPE = 0.5 * (1 + math.erf(1.0)) + math.exp(-1.0) / math.sqrt(math.pi)
_SILU_SLOPE = 1.09983932013
_TANH_CURVATURE = 4 / (3 * math.sqrt(3.0))


@dataclass(frozen=True)
class NonlinearityBounds:
    r"""Bounds of a nonlinearity where its arguments are bounded.

    Attributes:
        value: Bound of $|\phi|$.
        at_zero: $|\phi(0)|$.
        slope: Bound of $|\phi'|$.
        curvature: Lipschitz constant of $\phi'$; infinite where it has none.
        why: Why the curvature is infinite; else empty.
    """

    value: float
    at_zero: float
    slope: float
    curvature: float
    why: str = ""


def nonlinearity_bounds(name: str, largest: float = math.inf) -> NonlinearityBounds:
    r"""Return bounds of a nonlinearity and its first two derivatives.

    Assumes: arguments of magnitude at most ``largest``.

    References:
        MacDonald et al. (2023), On skip connections and normalisation layers in deep
        optimisation, theorem 4.5, where the slope must be Lipschitz, which continuity
        alone does not give.

    Example:
        >>> round(nonlinearity_bounds("tanh").curvature, 10)
        0.7698003589
    """
    _check_name(name)
    if not largest >= 0:
        raise ConfigError(f"largest is {largest!r}: pass a number from 0 up")
    m = float(largest)
    if name == "three_halves":
        slope = 1.5 * math.sqrt(m)
        why = "the slope of sgn(z)|z|^(3/2) is continuous and not Lipschitz at 0"
        return NonlinearityBounds(m**1.5, 0.0, slope, math.inf, why)
    if name == "relu":
        why = "ReLU's slope jumps at 0, so that its Jacobian is not Lipschitz"
        return NonlinearityBounds(m, 0.0, 1.0, math.inf, why)
    value, at_zero, slope, curvature = _TABLE[name]
    return NonlinearityBounds(value(m), at_zero, slope, curvature)


def nonlinearity_derivatives(
    name: str, z: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return $\phi$, $\phi'$ and $\phi''$ at each entry.

    Where $\phi''$ does not exist the one from the right is returned, and infinity for
    ``three_halves`` at 0. ReLU's slope at 0 is 0, as torch has it.

    Example:
        >>> [float(part[0]) for part in nonlinearity_derivatives("sigmoid", [0.0])]
        [0.5, 0.25, 0.0]
    """
    _check_name(name)
    return _DERIVATIVES[name](as_numbers("z", z, "entries", ...))


def _check_name(name: str) -> None:
    if name not in NONLINEARITIES:
        raise unknown_name("nonlinearity", name, NONLINEARITIES)


def _softplus_size(m: float) -> float:
    return m + math.log1p(math.exp(-m)) if m < math.inf else math.inf


_TABLE: dict[str, tuple[Callable[[float], float], float, float, float]] = {
    "identity": (float, 0.0, 1.0, 0.0),
    "tanh": (math.tanh, 0.0, 1.0, _TANH_CURVATURE),
    "sigmoid": (lambda m: float(expit(m)), 0.5, 0.25, _TANH_CURVATURE / 8),
    "symmetric_sigmoid": (lambda m: math.tanh(m / 2), 0.0, 0.5, _TANH_CURVATURE / 4),
    "log_sigmoid": (_softplus_size, math.log(2.0), 1.0, 0.25),
    "softplus": (_softplus_size, math.log(2.0), 1.0, 0.25),
    "softsign": (lambda m: min(m, 1.0), 0.0, 1.0, 2.0),
    "tanhshrink": (float, 0.0, 1.0, _TANH_CURVATURE),
    "gelu": (float, 0.0, _GELU_SLOPE, math.sqrt(2 / math.pi)),
    "silu": (float, 0.0, _SILU_SLOPE, 0.5),
    "elu": (float, 0.0, 1.0, 1.0),
    "ramp": (float, 0.0, 1.0, 1.0),
}

_Derivatives = tuple[np.ndarray, np.ndarray, np.ndarray]


def _tanh(z: np.ndarray) -> _Derivatives:
    t = np.tanh(z)
    return t, 1 - t**2, -2 * t * (1 - t**2)


def _half_tanh(z: np.ndarray) -> _Derivatives:
    t, slope, curvature = _tanh(z / 2)
    return t, slope / 2, curvature / 4


def _sigmoid(z: np.ndarray) -> _Derivatives:
    s = expit(z)
    slope = s * expit(-z)
    return s, slope, slope * (1 - 2 * s)


def _softplus(z: np.ndarray) -> _Derivatives:
    s, slope, _ = _sigmoid(z)
    return np.logaddexp(0.0, z), s, slope


def _log_sigmoid(z: np.ndarray) -> _Derivatives:
    value, slope, curvature = _softplus(-z)
    return -value, slope, -curvature


def _softsign(z: np.ndarray) -> _Derivatives:
    size = 1 + np.abs(z)
    return z / size, size**-2, -2 * np.where(z < 0, -1.0, 1.0) * size**-3


def _tanhshrink(z: np.ndarray) -> _Derivatives:
    t, slope, curvature = _tanh(z)
    return z - t, 1 - slope, -curvature


def _gelu(z: np.ndarray) -> _Derivatives:
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    mass = 0.5 * (1 + erf(z / math.sqrt(2.0)))
    return z * mass, mass + z * density, density * (2 - z**2)


def _silu(z: np.ndarray) -> _Derivatives:
    s, slope, curvature = _sigmoid(z)
    return z * s, s + z * slope, 2 * slope + z * curvature


def _elu(z: np.ndarray) -> _Derivatives:
    low = np.exp(np.minimum(z, 0.0))
    up = z >= 0
    return np.where(up, z, low - 1), low, np.where(up, 0.0, low)


def _ramp(z: np.ndarray) -> _Derivatives:
    slope = np.clip(z, 0.0, 1.0)
    inside = (z >= 0) & (z < 1)
    return np.where(z < 1, slope**2 / 2, z - 0.5), slope, inside * 1.0


def _relu(z: np.ndarray) -> _Derivatives:
    # At the kink the slope from the left, as autodiff has it, and the safe one where
    # a slope bounds a kernel from below.
    return np.maximum(z, 0.0), (z > 0) * 1.0, np.zeros_like(z)


def _three_halves(z: np.ndarray) -> _Derivatives:
    root = np.sqrt(np.abs(z))
    with np.errstate(divide="ignore"):
        curvature = 0.75 / root
    return z * root, 1.5 * root, np.where(z < 0, -1.0, 1.0) * curvature


_DERIVATIVES: dict[str, Callable[[np.ndarray], _Derivatives]] = {
    "identity": lambda z: (z, np.ones_like(z), np.zeros_like(z)),
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "symmetric_sigmoid": _half_tanh,
    "log_sigmoid": _log_sigmoid,
    "softplus": _softplus,
    "softsign": _softsign,
    "tanhshrink": _tanhshrink,
    "gelu": _gelu,
    "silu": _silu,
    "elu": _elu,
    "ramp": _ramp,
    "relu": _relu,
    "three_halves": _three_halves,
}
