r"""Normalisation of groups of entries, as batch, layer and group norms have it.

A group $u$ of $k$ entries becomes $g(u) = c / s$ with $c = u - \bar u$ and $s^2 =
\|c\|^2/k + \epsilon$. Its derivative $(P - \hat y\hat y^\top/k)/s$, with the projection
P that takes the mean away and $\hat y = c/s$, is symmetric and has norm $1/s$ at most;
$\|D^2 g\| \le 1.6/(\sqrt k s^2)$ and $\|D^3 g[a, a, \cdot]\| \le 13\|a\|^2/(k s^3)$, by
writing arguments as parts along c and across; s changes by $1/\sqrt k$ of what c does.
Midpoints are computed from midpoints alone, so that radii do not pass through each
operation of the formula.
"""

import math

import torch
from torch import Tensor

from .functions import rsqrt
from .intervals import ROUNDOFF, TINY, Interval, outward
from .norms import UP, euclidean
from .series import Series, plus

_SECOND, _THIRD = 1.6, 13.0


class _Groups:
    """Derivatives at the midpoint of a tensor's values, and how far they may be off."""

    def __init__(self, first: Interval, dims: tuple[int, ...], eps: float) -> None:
        self.dims, self.eps = dims, eps
        self.count = math.prod(first.mid.shape[dim] for dim in dims)
        self.c = self.centred(Interval(first.mid))
        variance = self.average(self.c.squared())
        total = variance + Interval(torch.full_like(variance.mid, eps))
        self.inverse = rsqrt(total)[0]
        self.y = self.c * self.inverse
        self._deviation = total.ends()[0].clamp(min=eps).sqrt() * (1 - 4 * ROUNDOFF)
        self.off = self.size(first)
        self.least = self.deviation(self.off)
        self._top = self.y.size() + self.off / self.least

    def average(self, x: Interval) -> Interval:
        """Return means of groups, by one dimension after the other.

        Rounding is then that of short sums.
        """
        for dim in self.dims:
            x = x.summed(
                lambda one, at=dim: one.mean(at, keepdim=True), x.mid.shape[dim]
            )
        return x

    def centred(self, x: Interval) -> Interval:
        """Return what is left without the mean."""
        return x + self.average(x).scaled(-1.0)

    def size(self, x: Interval) -> Tensor:
        """Return norms of groups of what is around a midpoint."""
        return self.norm(x.radius).clamp(max=x.reach)

    def norm(self, x: Tensor) -> Tensor:
        """Return norms of groups."""
        return torch.linalg.vector_norm(x, dim=self.dims, keepdim=True) * UP + TINY

    def deviation(self, away: Tensor) -> Tensor:
        """Return the least s within a distance."""
        least = self._deviation - away / math.sqrt(self.count)
        return least.clamp(min=math.sqrt(self.eps) * (1 - 4 * ROUNDOFF))

    def curvature(self, least: Tensor) -> Tensor:
        """Return a bound of the second derivative."""
        return _SECOND / math.sqrt(self.count) / least**2

    def derivative(self, x: Interval) -> Interval:
        """Return the derivative along x; it is its own transpose."""
        mid = self.centred(Interval(x.mid))
        along = self.average(self.y * mid) * self.y
        turned = self.curvature(self.least) * self.off * self.norm(x.mid)
        return self.around((mid + along.scaled(-1.0)) * self.inverse, x, turned)

    def around(self, mid: Interval, x: Interval, more: Tensor) -> Interval:
        """Return a derivative at a midpoint of x for all x, and off by some more."""

        def mean(one: Tensor) -> Tensor:
            return one.mean(self.dims, keepdim=True)

        rad = x.radius
        entries = rad + mean(rad) + self._top * mean(self._top * rad)
        entries = torch.minimum(entries, self.size(x)) / self.least + more
        norm = x.reach * float((1 / self.least).max()) + euclidean(more)
        return outward(
            mid.mid, mid.radius + entries * UP, 0.0, norm * UP + euclidean(mid.radius)
        )


def normalised(u: Series, dims: tuple[int, ...], eps: float) -> Series:
    """Return the series of groups, along some dimensions, of mean 0 and variance 1."""
    groups = _Groups(u.first, dims, eps)
    value = groups.around(groups.y, u.first, 0 * groups.off)
    slope, rest = (one and groups.derivative(one) for one in u.terms[1:])
    bend = None
    if u.length:
        bend = _bend(groups, u.slopes(), u.length).both(_by_parts(u, dims, eps))
    links = ((u, groups.derivative),) if u.bent else ()
    return Series((value, slope, plus(rest, bend)), u.length, links, (None, bend))


def _bend(groups: _Groups, change: Interval, length: float) -> Interval:
    """Return half the second derivative along changes, at all points up to a length."""
    c, inverse = groups.c, groups.inverse
    a = groups.centred(Interval(change.mid))
    along, square = groups.average(c * a), groups.average(a.squared())
    turned = (a * along + (c * square).scaled(0.5)) * inverse * inverse * inverse
    stretched = c * (along * inverse * inverse).squared() * inverse
    mid = turned.scaled(-1.0) + stretched.scaled(1.5)
    size, off = groups.norm(a.size()), groups.size(change)
    away = groups.off + length * (size + off)
    least = groups.deviation(away)
    third = _THIRD / groups.count / least**3 / 2 * away * size**2
    second = groups.curvature(least)
    rad = third + second * (size * off + off**2 / 2)
    reach = change.reach
    norm = float((second * size).max()) * reach + float(second.max()) * reach**2 / 2
    norm = (norm + euclidean(third)) * UP + euclidean(mid.radius)
    return outward(mid.mid, mid.radius + rad * UP, 0.0, norm)


def _by_parts(u: Series, dims: tuple[int, ...], eps: float) -> Interval:
    """Return half the second derivative from each operation of the formula."""
    count = math.prod(u.first.mid.shape[dim] for dim in dims)
    norm = UP / math.sqrt(count)

    def mean(one: Series) -> Series:
        return one.summed(lambda x: x.mean(dims, keepdim=True), count, norm)

    u = Series((u.first, u.slopes(), None), u.length)
    centred = u - mean(u)
    variance = mean(centred * centred)
    total = variance + u.constant(torch.full_like(variance.first.mid, eps))
    # A variance is not negative, whatever its interval says.
    bend = (centred * total.apply(rsqrt, least=eps)).terms[2]
    assert bend is not None
    return bend
