"""Functions of each entry, and softmax: slopes, curvatures and rounding."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

from theodolite.theory import nonlinearity_bounds

from .bends import curved, rectified
from .norms import euclidean
from .tubes import ELEMENTARY, Form, Tube, constant, gamma

# Names of smooth operators whose slope and curvature are bounded everywhere.
BOUNDED: dict[str, tuple[str, Form]] = {
    "tanh": ("tanh", torch.tanh),
    "sigmoid": ("sigmoid", torch.sigmoid),
    "silu": ("silu", functional.silu),
    "gelu": ("gelu", functional.gelu),
    "elu": ("elu", functional.elu),
    # Above a threshold torch takes the identity, which differs by e^-threshold.
    "softplus": ("softplus", lambda x: functional.softplus(x, threshold=40.0)),
    "log_sigmoid_forward": ("log_sigmoid", functional.logsigmoid),
}
# Others, with their first and second derivatives, both of which are largest in size at
# the least argument, which is positive, or, for exp, at the largest.
LOCAL: dict[str, tuple[Form, Form, Form]] = {
    "exp": (torch.exp, torch.exp, torch.exp),
    "log": (torch.log, torch.reciprocal, lambda x: x**-2),
    "sqrt": (torch.sqrt, lambda x: x**-0.5 / 2, lambda x: x**-1.5 / 4),
    "rsqrt": (torch.rsqrt, lambda x: x**-1.5 / 2, lambda x: x**-2.5 * 3 / 4),
    "reciprocal": (torch.reciprocal, lambda x: x**-2, lambda x: 2 * x**-3),
}


def smooth(u: Tube, name: str) -> Tube:
    """Return the tube of a smooth function of each entry."""
    if name in BOUNDED:
        known, form = BOUNDED[name]
        bounds = nonlinearity_bounds(known)
        ones = u.a.new_full([1] * u.a.ndim, 1 + ELEMENTARY)
        slope, second = ones * bounds.slope, ones * bounds.curvature
    else:
        form, first, other = LOCAL[name]
        lower, upper = u.ends()
        if name != "exp":
            upper = torch.where(lower > 0, lower, torch.nan)
        slope, second = (
            (derivative(upper) * (1 + 1e-12)).nan_to_num(nan=math.inf, posinf=math.inf)
            for derivative in (first, other)
        )
    rounding = max(ELEMENTARY * (euclidean(form(x)) + euclidean(x)) for x in (u.a, u.b))
    return curved(form, u, slope, second, rounding)


def log_sum_exp(u: Tube, dim: int) -> Tube:
    r"""Return the tube of $\log\sum_i e^{u_i}$.

    Its derivative p is of norm one at most, and the second derivative
    $\mathrm{diag}(p) - pp^\top$ of norm $\max(p)$ or ½.
    """
    shift = 2 * (u.change.abs().amax(dim, keepdim=True) + u.reach)
    top = u.a.softmax(dim).amax(dim, keepdim=True) * shift.exp() * (1 + 1e-9)
    one = torch.ones_like(top)
    rounding = max(
        (ELEMENTARY + gamma(u.a.shape[dim]))
        * (
            euclidean(x.amax(dim))
            + math.sqrt(one.numel()) * (1 + math.log(u.a.shape[dim]))
        )
        for x in (u.a, u.b)
    )
    form = partial(torch.logsumexp, dim=dim, keepdim=True)
    second = torch.minimum(top, one / 2)
    return curved(form, u, one, second, rounding, (dim,), convex=True)


def log_softmax(u: Tube, dim: int) -> Tube:
    """Return the tube of log-softmax."""
    return u - log_sum_exp(u, dim)


def softmax(u: Tube, dim: int) -> Tube:
    r"""Return the tube of softmax p.

    Its derivative is of norm ½ at most. $\langle c, D^2p[a, a]\rangle$ is the third
    moment $E(a - \bar a)^2(c - \bar c)$ under p, less
    than the variance of a, $\|a\|^2/2$ at most, times the range $\sqrt2\|c\|$ of c.
    """
    one = torch.ones_like(u.a.amax(dim, keepdim=True))
    rounding = math.sqrt(one.numel()) * (8 * ELEMENTARY + gamma(u.a.shape[dim]))
    rounding *= 1 + float(max(x.abs().max() for x in (u.a, u.b)))
    form = partial(torch.softmax, dim=dim)
    return curved(form, u, one / 2, one * 0.70711, rounding, (dim,))


def gelu_by_tanh(u: Tube) -> Tube:
    """Return the tube of GELU in its approximation by tanh."""
    inner = (u + (u * u * u).scaled(0.044715)).scaled(math.sqrt(2 / math.pi))
    return u.scaled(0.5) * (smooth(inner, "tanh") + _like(u, 1.0))


def leaky(u: Tube, slope: float) -> Tube:
    """Return the tube of a rectifier with a slope below zero."""
    return rectified(u).scaled(1.0 - slope) + u.scaled(slope)


def clamped(u: Tube, least: float | None, most: float | None) -> Tube:
    """Return the tube of values cut off at bounds."""
    for bound, sign in ((least, 1.0), (most, -1.0)):
        if bound is not None:
            edge = _like(u, bound)
            u = rectified((u - edge).scaled(sign)).scaled(sign) + edge
    return u


def _sixth(u: Tube) -> Tube:
    return clamped(u + _like(u, 3.0), 0.0, 6.0).scaled(1 / 6)


def _like(u: Tube, value: float) -> Tube:
    return constant(torch.full_like(u.a, value))


BY_TUBES: dict[str, Callable[..., Tube]] = {
    "relu": rectified,
    "leaky_relu": lambda u, slope=0.01: leaky(u, slope),
    "abs": lambda u: leaky(u, -1.0),
    "hardtanh": lambda u, least=-1.0, most=1.0: clamped(u, least, most),
    "clamp": lambda u, least=None, most=None: clamped(u, least, most),
    "clamp_min": lambda u, least: clamped(u, least, None),
    "hardswish": lambda u: u * _sixth(u),
    "hardsigmoid": _sixth,
    "neg": lambda u: u.scaled(-1.0),
    "_softmax": lambda u, dim, half: softmax(u, dim),
    "_safe_softmax": lambda u, dim: softmax(u, dim),
    "_log_softmax": lambda u, dim, half: log_softmax(u, dim),
}
