r"""Enclosures of elementwise functions with their slope and half their curvature.

Each function returns intervals that hold $\phi$, $\phi'$ and $\frac12\phi''$ at all
points of an interval. Curvatures are cut off at the bounds of ``theory``, which hold
everywhere.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from theodolite.theory import nonlinearity_bounds

from .intervals import ELEMENTARY, Interval, apply_monotone, between
from .series import Function, Series, Triple


def power(exponent: float, x: Interval) -> Triple:
    """Return those of a real power; nothing is known where x may be zero or below."""
    lower, upper = x.ends()
    unknown = torch.where(lower > 0, 0.0, torch.inf)

    def monotone(at: float, factor: float) -> Interval:
        ends = [end.clamp(min=1e-300) ** at for end in (lower, upper)]
        least = torch.minimum(*ends) * (1 - 1e-13)
        most = torch.maximum(*ends) * (1 + 1e-13)
        value = between(least, most).scaled(factor)
        return Interval(value.mid, value.radius + unknown)

    p = exponent
    return monotone(p, 1.0), monotone(p - 1, p), monotone(p - 2, p * (p - 1) / 2)


def exponential(x: Interval) -> Triple:
    """Return those of exp."""
    value = apply_monotone(torch.exp, x)
    return value, value, value.scaled(0.5)


def logarithm(x: Interval) -> Triple:
    """Return those of log."""
    value = apply_monotone(lambda end: end.clamp(min=1e-300).log(), x)
    slope, curvature, _ = power(-1.0, x)  # infinite where x may not be positive
    unknown = torch.where(x.ends()[0] > 0, 0.0, torch.inf)
    value = Interval(value.mid, value.radius + unknown)
    return value, slope, curvature.scaled(0.5)


def tanh(x: Interval) -> Triple:
    """Return those of tanh, y' = 1 − y²."""
    y = apply_monotone(torch.tanh, x)
    slope = _one(x) + (y * y).scaled(-1.0)
    return y, slope, _cut((y * slope).scaled(-1.0), "tanh")


def sigmoid(x: Interval) -> Triple:
    """Return those of 1 / (1 + exp(−x)), y' = y(1 − y)."""
    y = apply_monotone(torch.sigmoid, x)
    slope = y * (_one(x) + y.scaled(-1.0))
    return y, slope, _cut(slope * (_one(x).scaled(0.5) + y.scaled(-1.0)), "sigmoid")


def softplus(x: Interval) -> Triple:
    """Return those of log(1 + exp(x))."""
    slope, curvature, _ = sigmoid(x)
    value = apply_monotone(lambda z: z.clamp(min=0) + (-z.abs()).exp().log1p(), x)
    return value, slope, _cut(curvature.scaled(0.5), "softplus")


def gelu(x: Interval) -> Triple:
    """Return those of x Φ(x)."""
    lower, upper = (end.abs() for end in x.ends())
    nearest = torch.where(x.mid.abs() <= x.radius, 0.0, torch.minimum(lower, upper))
    far = between(nearest, torch.maximum(lower, upper))
    density = apply_monotone(torch.exp, (far * far).scaled(-0.5))
    density = density.scaled(1 / math.sqrt(2 * math.pi))
    mass = apply_monotone(torch.special.ndtr, x)
    # Far to the left its relative error grows; its absolute one does not.
    mass = Interval(mass.mid, mass.radius + ELEMENTARY)
    half = density * (_one(x) + (far * far).scaled(-0.5))
    return x * mass, mass + x * density, _cut(half, "gelu")


def silu(x: Interval) -> Triple:
    """Return those of x / (1 + exp(−x))."""
    y, slope, half = sigmoid(x)
    return x * y, y + x * slope, _cut(slope + x * half, "silu")


def elu(x: Interval) -> Triple:
    """Return those of ELU: its curvature is exp(x) below zero and 0 above."""
    low = apply_monotone(torch.exp, Interval(*_clamped(x)))
    lower, upper = x.ends()
    below = between(torch.zeros_like(upper), torch.where(upper > 0, 1.0, low.size()))
    half = below.moved(lambda part: torch.where(lower >= 0, 0.0, part))
    value = apply_monotone(torch.nn.functional.elu, x)
    # Near zero the relative error may be larger.
    value = Interval(value.mid, value.radius + ELEMENTARY)
    return value, low, half.scaled(0.5)


def _clamped(x: Interval) -> tuple[Tensor, Tensor]:
    lower, upper = (end.clamp(max=0) for end in x.ends())
    return _parts(between(lower, upper))


def _parts(x: Interval) -> tuple[Tensor, Tensor]:
    return x.mid, x.radius


def _one(x: Interval) -> Interval:
    return Interval(torch.ones_like(x.mid))


def _cut(half: Interval, name: str) -> Interval:
    """Return half a curvature, cut off at the bound that holds everywhere."""
    bound = 0.5 * nonlinearity_bounds(name).curvature * (1 + ELEMENTARY)
    lower, upper = half.ends()
    # Where an end is no number, the bound is.
    lower = torch.fmax(lower, torch.full_like(lower, -bound)).clamp(max=bound)
    upper = torch.fmin(upper, torch.full_like(upper, bound)).clamp(min=-bound)
    return between(lower, upper)


reciprocal: Function = partial(power, -1.0)
rsqrt: Function = partial(power, -0.5)
sqrt: Function = partial(power, 0.5)


def gelu_by_tanh(u: Series) -> Series:
    """Return the series of GELU in its approximation by tanh."""
    inner = (u + (u * u * u).scaled(0.044715)).scaled(math.sqrt(2 / math.pi))
    return u.scaled(0.5) * (inner.apply(tanh) + _constant(u, 1.0))


def leaky(u: Series, slope: float) -> Series:
    """Return the series of a rectifier with a slope below zero."""
    return u.rectified().scaled(1.0 - slope) + u.scaled(slope)


def clamped(u: Series, least: float | None, most: float | None) -> Series:
    """Return the series of values cut off at bounds."""
    for bound, sign in ((least, 1.0), (most, -1.0)):
        if bound is not None:
            edge = _constant(u, bound)
            u = (u - edge).scaled(sign).rectified().scaled(sign) + edge
    return u


def _sixth(u: Series) -> Series:
    return clamped(u + _constant(u, 3.0), 0.0, 6.0).scaled(1 / 6)


def _constant(u: Series, value: float) -> Series:
    return u.constant(torch.full_like(u.first.mid, value))


SMOOTH: dict[str, Function] = {
    "tanh": tanh,
    "sigmoid": sigmoid,
    "silu": silu,
    "exp": exponential,
    "log": logarithm,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "reciprocal": reciprocal,
}
BY_SERIES: dict[str, Callable[..., Series]] = {
    "relu": lambda u: u.rectified(),
    "leaky_relu": lambda u, slope=0.01: leaky(u, slope),
    "abs": lambda u: leaky(u, -1.0),
    "hardtanh": lambda u, least=-1.0, most=1.0: clamped(u, least, most),
    "clamp": lambda u, least=None, most=None: clamped(u, least, most),
    "clamp_min": lambda u, least: clamped(u, least, None),
    "hardswish": lambda u: u * _sixth(u),
    "hardsigmoid": _sixth,
    "log_sigmoid_forward": lambda u: u.scaled(-1.0).apply(softplus).scaled(-1.0),
    "neg": lambda u: u.scaled(-1.0),
}
