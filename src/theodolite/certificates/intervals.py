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

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

ROUNDOFF = 2.0**-53
# Above the sum of all underflows of a product of matrices.
TINY = 1e-290
# Largest relative error of torch's exp, log, tanh, sigmoid and erf that is allowed for;
# measured ones are some 2e-16 (a test compares with mpmath).
ELEMENTARY = 2.0**-44

Bilinear = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Interval:
    """All tensors that differ from a midpoint by at most a radius, entry by entry."""

    mid: Tensor
    rad: Tensor | None = None  # None for a single tensor, which is exact

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
        return outward(mid, self.radius + other.radius, 2 * ROUNDOFF * mid.abs())

    def __mul__(self, other: "Interval") -> "Interval":
        """Return all products, entry by entry."""
        mid = self.mid * other.mid
        rad = self.mid.abs() * other.radius
        rad = rad + self.radius * (other.mid.abs() + other.radius)
        return outward(mid, rad, 2 * ROUNDOFF * mid.abs())

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
            return Interval(self.mid * factor, self.rad)
        mid = self.mid * factor
        return outward(mid, self.radius * abs(factor), 8 * ROUNDOFF * mid.abs())

    def shrunk(self, length: float) -> "Interval":
        """Return all multiples by numbers between 0 and ``length``."""
        lower, upper = (self.scaled(length)).ends()
        return between(lower.clamp(max=0), upper.clamp(min=0))

    def moved(self, change: Callable[[Tensor], Tensor]) -> "Interval":
        """Return the interval of entries that are only moved, repeated or left out."""
        return Interval(
            change(self.mid), None if self.rad is None else change(self.rad)
        )

    def summed(self, add: Callable[[Tensor], Tensor], count: int) -> "Interval":
        """Return sums or means of at most ``count`` entries each."""
        mid, rounding = add(self.mid), gamma(count + 2) * add(self.mid.abs())
        return outward(mid, add(self.radius) * (1 + 2 * gamma(count + 2)), rounding)

    def hull(self, other: "Interval") -> "Interval":
        """Return an interval that holds both."""
        (a, b), (c, d) = self.ends(), other.ends()
        return between(torch.minimum(a, c), torch.maximum(b, d))


def gamma(count: int) -> float:
    r"""Return an upper bound of $\gamma_n$."""
    return 1.01 * count * ROUNDOFF


def outward(mid: Tensor, rad: Tensor, rounding: Tensor) -> Interval:
    """Return an interval whose radius allows for its own rounding."""
    return Interval(mid, (rad + rounding) * (1 + 16 * ROUNDOFF) + TINY)


def between(lower: Tensor, upper: Tensor) -> Interval:
    """Return the interval between two bounds; a lower one above is no interval."""
    size = lower.abs() + upper.abs()
    return outward((lower + upper) / 2, (upper - lower) / 2, 4 * ROUNDOFF * size)


def bilinear(form: Bilinear, a: Interval, b: Interval, count: int) -> Interval:
    """Return all values of a bilinear form, sums of at most ``count`` products."""
    mid, slack = form(a.mid, b.mid), gamma(count + 4)
    inner = b.radius + slack * b.mid.abs()
    rad = form(a.mid.abs(), inner)
    if a.rad is not None:
        rad = rad + form(a.rad, b.mid.abs() + b.radius)
    return outward(mid, rad * (1 + 4 * slack), slack * TINY + torch.zeros_like(mid))


def apply_monotone(function: Callable[[Tensor], Tensor], x: Interval) -> Interval:
    """Return values of a growing function, whose code may err by ``ELEMENTARY``."""
    lower, upper = (function(end) for end in x.ends())
    slack = ELEMENTARY
    return between(
        lower - slack * lower.abs() - TINY, upper + slack * upper.abs() + TINY
    )
