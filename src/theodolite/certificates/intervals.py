r"""Intervals of numbers by midpoint and radius, rounded outwards in float64.

An operation returns an interval that holds the exact result for all numbers in its
operands. With unit roundoff $u = 2^{-53}$, a single operation errs by $u$ of its
result, and a sum of $n$ products, in whatever order, by $\gamma_n = nu/(1 - nu)$ of
the sum of their absolute values. Radii are sums of nonnegative numbers and are enlarged
by more than their own rounding; an underflow is below the smallest radius added.

References:
    Rump (1999), Fast and parallel interval arithmetic, BIT.
    Higham (2002), Accuracy and stability of numerical algorithms, chapters 2 and 3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .norms import UP, Norms, euclidean, repeats

ROUNDOFF = 2.0**-53
# Above the sum of all underflows of a product of matrices.
TINY = 1e-290
# Largest relative error of torch's exp, log, tanh, sigmoid and erf that is allowed for;
# measured ones are some 2e-16 (a test compares with mpmath).
ELEMENTARY = 2.0**-44

Bilinear = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Interval:
    """All tensors that differ from a midpoint by at most a radius, entry by entry.

    The Euclidean norm of the difference, over all entries, is bounded as well: a matrix
    multiplies it by its spectral norm, and radii by absolute values, which are larger.
    """

    mid: Tensor
    rad: Tensor | None = None  # None for a single tensor, which is exact
    norm: float = math.inf  # bound of the difference's norm, where one is known

    @cached_property
    def reach(self) -> float:
        """The least bound of the norm of the difference."""
        return 0.0 if self.rad is None else min(self.norm, euclidean(self.rad))

    @property
    def radius(self) -> Tensor:
        """The radius as a tensor."""
        return torch.zeros_like(self.mid) if self.rad is None else self.rad

    def ends(self) -> tuple[Tensor, Tensor]:
        """Return a lower and an upper bound."""
        if self.rad is None:
            return self.mid, self.mid
        outside = self.rad + 4 * ROUNDOFF * (self.mid.abs() + self.rad)
        return self.mid - outside, self.mid + outside

    def size(self) -> Tensor:
        """Return an upper bound of the absolute values."""
        return (self.mid.abs() + self.radius) * (1 + 4 * ROUNDOFF)

    def __add__(self, other: "Interval") -> "Interval":
        """Return all sums."""
        mid = self.mid + other.mid
        alike = self.mid.shape == other.mid.shape
        norm = self.reach + other.reach if alike else math.inf
        return outward(mid, self.radius + other.radius, 2 * ROUNDOFF * mid.abs(), norm)

    def __mul__(self, other: "Interval") -> "Interval":
        """Return all products, entry by entry."""
        mid = self.mid * other.mid
        rad = self.mid.abs() * other.radius
        rad = rad + self.radius * (other.mid.abs() + other.radius)
        norm = spread(self, other, Norms())
        return outward(mid, rad, 2 * ROUNDOFF * mid.abs(), norm)

    def squared(self) -> "Interval":
        """Return all squares, which are not negative."""
        lower, upper = self.ends()
        least = torch.where((lower < 0) & (upper > 0), 0.0, 1.0)
        small, large = torch.minimum(lower.abs(), upper.abs()), self.size()
        slack = 4 * ROUNDOFF
        return between(least * small**2 * (1 - slack), large**2 * (1 + slack))

    def scaled(self, factor: float) -> "Interval":
        """Return the multiples by a number, which may itself be rounded."""
        if factor in (1.0, -1.0):
            return Interval(self.mid * factor, self.rad, self.norm)
        mid, norm = self.mid * factor, abs(factor) * self.reach
        return outward(mid, self.radius * abs(factor), 8 * ROUNDOFF * mid.abs(), norm)

    def shrunk(self, length: float) -> "Interval":
        """Return all multiples by numbers between 0 and ``length``."""
        half, whole = self.scaled(length / 2), self.scaled(length)
        rad = half.mid.abs() + whole.radius
        norm = euclidean(half.mid) + whole.reach
        return outward(half.mid, rad, 0.0, norm)

    def moved(self, change: Callable[[Tensor], Tensor]) -> "Interval":
        """Return the interval of entries that are only moved, repeated or left out."""
        mid = change(self.mid)
        if self.rad is None:
            return Interval(mid)
        norm = self.norm
        if norm < math.inf and not _is_view(mid, self.mid):
            norm *= repeats(change, self.mid)
        return Interval(mid, change(self.rad), norm)

    def summed(
        self, add: Callable[[Tensor], Tensor], count: int, norm: float = math.inf
    ) -> "Interval":
        """Return sums or means of at most ``count`` entries each.

        Args:
            add: The map, of nonnegative weights.
            count: Largest number of entries in a sum.
            norm: Norm of the map.
        """
        mid, rounding = add(self.mid), gamma(count + 2) * add(self.mid.abs())
        rad = add(self.radius) * (1 + 2 * gamma(count + 2))
        norm = norm * self.reach if norm < math.inf else norm
        return outward(mid, rad, rounding, norm)

    def both(self, other: "Interval") -> "Interval":
        """Return an interval of what is in both."""
        gap = (self.mid - other.mid).abs() * (1 + 4 * ROUNDOFF)
        rad = torch.fmin(self.radius, (other.radius + gap) * (1 + 4 * ROUNDOFF))
        norm = min(self.reach, (other.reach + euclidean(gap)) * UP)
        return Interval(self.mid, torch.fmin(rad, torch.full_like(rad, norm)), norm)

    def hull(self, other: "Interval") -> "Interval":
        """Return an interval that holds both."""
        (a, b), (c, d) = self.ends(), other.ends()
        return between(torch.minimum(a, c), torch.maximum(b, d))


def gamma(count: int) -> float:
    r"""Return an upper bound of $\gamma_n$."""
    return 1.01 * count * ROUNDOFF


def outward(
    mid: Tensor, rad: Tensor, rounding: Tensor | float, norm: float = math.inf
) -> Interval:
    """Return an interval whose radius allows for its own rounding.

    Args:
        mid: The midpoint, as computed.
        rad: Radius without what was rounded here.
        rounding: Radius of that.
        norm: Bound of the difference's norm, without what was rounded here.
    """
    rad = (rad + rounding) * (1 + 16 * ROUNDOFF) + TINY
    if not norm < math.inf:
        return Interval(mid, rad)
    if isinstance(rounding, Tensor):
        norm += euclidean(rounding)
    norm = norm * UP + TINY
    return Interval(mid, rad.clamp(max=norm), norm)


def spread(a: Interval, b: Interval, norms: Norms) -> float:
    """Return a bound of the norm by which a bilinear form of intervals differs."""
    reaches = a.reach, b.reach
    if not all(one < math.inf for one in reaches):
        return math.inf
    total = math.prod(reaches) * norms.cross
    if reaches[0]:
        total += reaches[0] * norms.fixing(1, b.mid, a.mid.shape)
    if reaches[1]:
        total += reaches[1] * norms.fixing(0, a.mid, b.mid.shape)
    return total


def _is_view(mid: Tensor, of: Tensor) -> bool:
    """Return whether entries were only put into another shape or order."""
    same = mid.untyped_storage().data_ptr() == of.untyped_storage().data_ptr()
    return same and mid.numel() == of.numel()


def between(lower: Tensor, upper: Tensor) -> Interval:
    """Return the interval between two bounds; a lower one above is no interval."""
    size = lower.abs() + upper.abs()
    return outward((lower + upper) / 2, (upper - lower) / 2, 4 * ROUNDOFF * size)


def bilinear(
    form: Bilinear, a: Interval, b: Interval, count: int, norms: Norms
) -> Interval:
    """Return all values of a bilinear form, sums of at most ``count`` products."""
    mid, slack = form(a.mid, b.mid), gamma(count + 4)
    if b.rad is None:
        rad = form(a.radius + slack * a.mid.abs(), b.mid.abs())
    else:
        rad = form(a.mid.abs(), b.rad + slack * b.mid.abs())
        if a.rad is not None:
            rad = rad + form(a.rad, b.mid.abs() + b.rad)
    rounding = slack * norms.cross * euclidean(a.mid) * euclidean(b.mid)
    norm = spread(a, b, norms) + rounding
    return outward(mid, rad * (1 + 4 * slack) + slack * TINY, 0.0, norm)


def apply_monotone(function: Callable[[Tensor], Tensor], x: Interval) -> Interval:
    """Return values of a growing function, whose code may err by ``ELEMENTARY``."""
    lower, upper = (function(end) for end in x.ends())
    slack = ELEMENTARY
    return between(
        lower - slack * lower.abs() - TINY, upper + slack * upper.abs() + TINY
    )
