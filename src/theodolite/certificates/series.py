r"""Bounds of a tensor along a segment, as a series in the length of the step.

A tensor $u(t)$, for $t$ between 0 and $T$, is enclosed by intervals $C_0, C_1, C_2$:
$u(0)$ is in $C_0$, and for each $t$ there are numbers $c_1 \in C_1$ and $c_2 \in C_2$
with $u(t) = u(0) + c_1 t + c_2 t^2$. For a smooth tensor $C_1$ holds the derivative at
0, up to rounding, and $C_2$ half the second derivative along the segment. A kink that a
rectifier may pass is an interval of slopes in $C_1$, so that no second derivative is
needed there. Each operation keeps the enclosure, for each $t$ alone.

Each operation is its linear part at 0 plus a *bend*, and the loss is its own tangent
plus all bends, each multiplied by the derivative of the loss by that tensor at 0. That
sum, of signs that cancel, is far tighter than $C_1$ and $C_2$ of the loss, in which
radii are multiplied by absolute values of one matrix after the other.

References:
    Moore (1979), Methods and applications of interval analysis, SIAM.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .intervals import (
    ELEMENTARY,
    Bilinear,
    Interval,
    between,
    bilinear,
    gamma,
    outward,
)
from .norms import Norms, euclidean

# Enclosures of a function's value, slope and half its curvature on an interval.
Triple = tuple[Interval, Interval, Interval]
Function = Callable[[Interval], Triple]
Bend = tuple[Interval | None, Interval | None]
Pull = Callable[[Interval], Interval]


@dataclass(frozen=True, eq=False)
class Series:
    """Intervals of the coefficients, with None where one is zero."""

    terms: tuple[Interval, Interval | None, Interval | None]
    length: float  # T
    # What it was computed from, with the map of derivatives back there.
    links: tuple[tuple["Series", Pull], ...] = ()
    # What its operation adds to its linear part: C_1 and C_2 of that.
    bend: Bend = (None, None)

    @property
    def first(self) -> Interval:
        """The value at 0."""
        return self.terms[0]

    @property
    def bent(self) -> bool:
        """Whether any operation before it adds to its linear part."""
        return bool(self.links) or self.bend != (None, None)

    def linear(self, change: Callable[[Interval], Interval], pull: Pull) -> "Series":
        """Return the series of a linear map, given the map back of derivatives."""
        first, *rest = self.terms
        terms = (change(first), *(one and change(one) for one in rest))
        links = ((self, pull),) if self.bent else ()
        return Series(terms, self.length, links)  # pyright: ignore[reportArgumentType]

    def moved(self, change: Callable[[Tensor], Tensor]) -> "Series":
        """Return the series of entries that are only moved, repeated or left out."""
        back = _back(change, self.first.mid)
        return self.linear(lambda one: one.moved(change), back)

    def summed(
        self, add: Callable[[Tensor], Tensor], count: int, norm: float = math.inf
    ) -> "Series":
        """Return the series of sums or means of at most ``count`` entries each."""
        back = _back(add, self.first.mid)
        return self.linear(lambda one: one.summed(add, count, norm), back)

    def scaled(self, factor: float) -> "Series":
        """Return the series of a multiple."""
        return self.linear(lambda one: one.scaled(factor), lambda by: by.scaled(factor))

    def constant(self, value: Tensor) -> "Series":
        """Return the series of a tensor that does not move."""
        return Series((Interval(value.to(self.first.mid)), None, None), self.length)

    def __add__(self, other: "Series") -> "Series":
        """Return the series of the sum."""
        shape = torch.broadcast_shapes(self.first.mid.shape, other.first.mid.shape)
        a, b = (
            one
            if one.first.mid.shape == shape
            else one.moved(lambda x: x.expand(shape))
            for one in (self, other)
        )
        terms = (
            a.first + b.first,
            plus(a.terms[1], b.terms[1]),
            plus(a.terms[2], b.terms[2]),
        )
        links = tuple((one, unchanged) for one in (a, b) if one.bent)
        return Series(terms, self.length, links)

    def __sub__(self, other: "Series") -> "Series":
        """Return the series of the difference."""
        return self + other.scaled(-1.0)

    def __mul__(self, other: "Series") -> "Series":
        """Return the series of the product, entry by entry."""
        if self is other:
            return self.squared()
        return self.bilinear(torch.mul, other, 1, Norms())

    def squared(self) -> "Series":
        """Return the series of the squares of the entries."""
        a, b, c = self.terms
        bend = self.slopes().squared() if self.length else None
        double = a.scaled(2.0)
        terms = (a * a, b and double * b, plus(c and double * c, bend))
        links = ((self, lambda by: by * double),) if self.bent else ()
        return Series(terms, self.length, links, (None, bend))

    def bilinear(
        self, form: Bilinear, other: "Series", count: int, norms: Norms
    ) -> "Series":
        """Return the series of a bilinear form, of sums of at most ``count``."""

        def of(a: Interval | None, b: Interval | None) -> Interval | None:
            if a is None or b is None:
                return None
            return bilinear(form, a, b, count, norms)

        (a0, a1, a2), (b0, b1, b2) = self.terms, other.terms
        moves = (a1, a2) != (None, None) and (b1, b2) != (None, None)
        bend = of(self.slopes(), other.slopes()) if moves and self.length else None
        terms = (
            bilinear(form, a0, b0, count, norms),
            plus(of(a0, b1), of(a1, b0)),
            plus(plus(of(a0, b2), of(a2, b0)), bend),
        )
        links = []
        if self.bent:
            links.append((self, _back_bilinear(form, a0.mid, b0)))
        if other.bent:
            links.append((other, _back_bilinear(lambda y, x: form(x, y), b0.mid, a0)))
        return Series(terms, self.length, tuple(links), (None, bend))

    def range(self) -> Interval:
        """Return an enclosure of the values at all t."""
        return self.first + self.slopes().shrunk(self.length)

    def slopes(self) -> Interval:
        """Return an enclosure of the values' changes over t."""
        _, slope, rest = self.terms
        if slope is None and rest is None:
            return Interval(torch.zeros_like(self.first.mid))
        total = plus(slope, None if rest is None else rest.shrunk(self.length))
        assert total is not None
        return total

    def apply(self, function: Function, least: float | None = None) -> "Series":
        """Return the series of a smooth function of each entry, by Taylor's theorem.

        Args:
            function: The function.
            least: A bound that no value is below, whatever the intervals say.
        """
        value, slope, _ = function(self.first)
        bend = self._bend(function, least) if self.length else None
        _, first, second = self.terms
        terms = (value, first and slope * first, plus(second and slope * second, bend))
        links = ((self, lambda by: slope * by),) if self.bent else ()
        return Series(terms, self.length, links, (None, bend))

    def _bend(self, function: Function, least: float | None) -> Interval:
        everywhere = self.range()
        if least is not None:
            lower, upper = (end.clamp(min=least) for end in everywhere.ends())
            everywhere = between(lower, upper)
        return function(everywhere)[2] * self.slopes().squared()

    def rectified(self) -> "Series":
        """Return the series of max(u, 0).

        Its linear part is that at 0; where the sign at 0 is not certain, it is zero.
        """
        lower, upper = self.first.ends()
        falls, climbs = self.slopes().ends()
        on, off = lower > 0, upper < 0
        # What is added to the line that it begins on, over t.
        kinks = torch.where(
            on,
            late_rise(-falls, lower, self.length),
            late_rise(climbs, -upper, self.length),
        )
        sure = on | off
        jump = between(
            torch.where(sure, 0.0, falls.clamp(max=0)),
            torch.where(sure, kinks, climbs.clamp(min=0)),
        )

        def kept(one: Interval) -> Interval:
            return one.moved(lambda tensor: torch.where(on, tensor, 0.0))

        # Below zero the value is exactly zero, and so is its radius.
        value = between(lower.clamp(min=0), upper.clamp(min=0))
        pick = [torch.where(on, x, torch.where(off, 0.0, y)) for x, y in zip(
            (self.first.mid, self.first.radius), (value.mid, value.radius), strict=True
        )]  # fmt: skip
        _, slope, rest = self.terms
        reach = self.first.reach + euclidean(torch.where(sure, 0.0, value.radius))
        terms = (
            Interval(pick[0], pick[1], reach),
            plus(slope and kept(slope), jump),
            rest and kept(rest),
        )
        links = ((self, kept),) if self.bent else ()
        return Series(terms, self.length, links, (jump, None))

    def by_bends(self, tangent: Interval | None) -> "Series":
        r"""Return a loss as its tangent and all bends on the way to it.

        An operation is $y - y_0 = J(x - x_0) + b$ with its bend b. For any numbers
        $\lambda_y$, with 1 for the loss, the loss is its tangent plus
        $\sum_y \langle\lambda_y, b_y\rangle$ plus $\sum_x \langle J^T\lambda_y -
        \lambda_x, x - x_0 - t \dot x_0\rangle$. The $\lambda$ are derivatives of the
        loss as computed, so that the last sum is of their rounding.

        Args:
            tangent: Enclosure of its derivative at 0.
        """
        pulls = {id(self): Interval(torch.ones_like(self.first.mid))}
        total: list[Interval | None] = [tangent, None]

        def add(place: int, by: Interval, bend: Interval) -> None:
            part = (by * bend).summed(torch.sum, bend.mid.numel())
            if by.rad is None:
                # By the inequality of Cauchy and Schwarz.
                rounding = gamma(bend.mid.numel() + 8) * (by.mid * bend.mid).abs().sum()
                most = bend.reach * euclidean(by.mid) + rounding * (1 + ELEMENTARY)
                part = Interval(part.mid, part.radius.clamp(max=most))
            total[place] = plus(total[place], part)

        for node in reversed(_ordered(self)):
            by, (_, slope, rest) = pulls.pop(id(node)), node.terms
            exact, rounding = Interval(by.mid), Interval(0 * by.mid, by.radius)
            # Two slopes of an interval differ by at most twice its radius.
            if slope is not None:
                add(0, rounding, Interval(slope.radius).scaled(2.0))
            if rest is not None:
                add(1, rounding, rest)
            for place, bend in enumerate(node.bend):
                if bend is not None:
                    add(place, exact, bend)
            for other, pull in node.links:
                part, known = pull(exact), pulls.get(id(other))
                pulls[id(other)] = part if known is None else known + part
        return Series((self.first, total[0], total[1]), self.length)


def late_rise(slope: Tensor, distance: Tensor, length: float) -> Tensor:
    """Return the largest (slope t − distance) / t up to a length, if above zero."""
    if not length:
        return torch.zeros_like(slope)
    late = slope - distance / length
    return (late + 1e-15 * (slope.abs() + distance.abs() / length)).clamp(min=0)


def unchanged(by: Interval) -> Interval:
    """Return derivatives as they are."""
    return by


def plus(a: Interval | None, b: Interval | None) -> Interval | None:
    """Return a sum, in which None is zero."""
    return a + b if a is not None and b is not None else (b if a is None else a)


def _ordered(end: Series) -> list[Series]:
    """Return a series and all that it was computed from, what was used first."""
    done: dict[int, Series] = {}
    stack = [(end, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            done[id(node)] = node
        elif id(node) not in done:
            stack.append((node, True))
            stack += [(other, False) for other, _ in node.links]
    return list(done.values())


def _transposed(
    change: Callable[[Tensor], Tensor], like: Tensor
) -> Callable[[Tensor], Tensor]:
    """Return the transpose of a linear map of tensors."""
    with torch.enable_grad():
        at = torch.zeros_like(like, requires_grad=True)
        result = change(at)
    return lambda by: torch.autograd.grad(
        result, at, by.expand(result.shape), retain_graph=True
    )[0]


def _back(change: Callable[[Tensor], Tensor], like: Tensor) -> Pull:
    """Return the map of derivatives back through a map of nonnegative weights."""

    def pull(by: Interval) -> Interval:
        back, slack = _transposed(change, like), gamma(by.mid.numel() + 4)
        rad = back(by.radius) * (1 + 2 * slack)
        return outward(back(by.mid), rad, 2 * slack * back(by.mid.abs()))

    return pull


def _back_bilinear(form: Bilinear, like: Tensor, other: Interval) -> Pull:
    """Return the map of derivatives back to the first argument of a bilinear form."""

    def pull(by: Interval) -> Interval:
        slack = gamma(by.mid.numel() + 4)
        size = by.radius + slack * by.mid.abs()
        mid = _transposed(lambda x: form(x, other.mid), like)(by.mid)
        rad = _transposed(lambda x: form(x, other.mid.abs()), like)(size)
        if other.rad is not None:
            whole = by.mid.abs() + by.radius
            rad = rad + _transposed(lambda x: form(x, other.radius), like)(whole)
        return outward(mid, rad * (1 + 4 * slack), slack * mid.abs())

    return pull
