"""Softmax and its logarithm along a segment."""

from functools import partial

import torch

from .functions import logarithm
from .intervals import TINY, Interval, apply_monotone, between, gamma
from .series import Series, plus


def log_softmax(u: Series, dim: int) -> Series:
    r"""Return the series of log-softmax.

    The second derivative of $\log\sum_i e^{u_i}$ along a change g is the variance of g
    under the softmax: at most $\sum_i p_i (g_i - a)^2$ for any a, and a quarter of the
    square of the range of g.
    """
    change, classes = u.slopes(), u.first.mid.shape[dim]
    total = partial(torch.sum, dim=dim, keepdim=True)
    here = _softmax(u.first, dim)
    top = Interval(u.first.mid.amax(dim, keepdim=True))
    shifted = apply_monotone(torch.exp, u.first + top.scaled(-1.0))
    value = logarithm(shifted.summed(total, classes))[0] + top
    centre = Interval(total(here.mid * change.mid))
    squares = (change + centre.scaled(-1.0)).squared()
    lower, upper = change.ends()
    spread = upper.amax(dim, keepdim=True) - lower.amin(dim, keepdim=True)
    variance = torch.fmin(
        (_softmax(u.range(), dim) * squares).summed(total, classes).ends()[1],
        spread**2 / 4 * (1 + 1e-12),
    )
    bend = between(torch.zeros_like(variance), variance / 2 * (1 + 1e-15))
    bend = bend if u.length else None
    _, slope, rest = u.terms
    slope, rest = (one and (here * one).summed(total, classes) for one in (slope, rest))
    links = ((u, lambda by: here * by),) if u.bent else ()
    terms = (value, slope, plus(rest, bend))
    return u - Series(terms, u.length, links, (None, bend))


def _softmax(u: Interval, dim: int) -> Interval:
    """Return an enclosure of softmax at all points of an interval."""
    top = u.ends()[1].amax(dim, keepdim=True)
    lower, upper = (torch.exp(end - top) for end in u.ends())
    above, below = (end.sum(dim, keepdim=True) for end in (upper, lower))
    rounding = gamma(u.mid.shape[dim] + 8)
    slack = 1e-11
    least = lower / (lower + (above - upper) + rounding * above)
    most = upper / (upper + (below - lower - rounding * below).clamp(min=0))
    least = torch.fmax(least * (1 - slack) - TINY, torch.zeros_like(least))
    most = torch.fmin(most * (1 + slack) + TINY, torch.ones_like(most))
    return between(least, most)
