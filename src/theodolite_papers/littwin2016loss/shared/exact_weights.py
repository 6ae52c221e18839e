"""Weights of path lengths as exact Python integers, from their definition alone."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb


@dataclass(frozen=True, kw_only=True)
class ExactWeights:
    r"""Weights $\binom{p-1}{r-1}\beta^r$ for a fraction $\beta$, as exact integers."""

    depth: int  # $p$
    beta: Fraction  # $\beta$
    # 1 for the binomials of Eq 16, 0 for those that the proofs use, $\binom{p}{r}$.
    shift: int = 1

    @cached_property
    def whole(self) -> list[int]:
        """Integers proportional to the weights, for lengths from 1 up."""
        above, below, s = self.beta.numerator, self.beta.denominator, self.shift
        return [
            comb(self.depth - s, r - s) * above**r * below ** (self.depth - r)
            for r in range(1, self.depth + 1)
        ]

    @cached_property
    def squares(self) -> list[int]:
        """Squares of the integers in ``whole``."""
        return [weight**2 for weight in self.whole]

    @cached_property
    def total(self) -> int:
        """Sum of the squares."""
        return sum(self.squares)

    @property
    def maximisers(self) -> list[int]:
        """All lengths of greatest weight."""
        most = max(self.whole)
        return [r for r, weight in enumerate(self.whole, start=1) if weight == most]

    @property
    def shares(self) -> list[float]:
        r"""$\epsilon_r^2$, each rounded once."""
        return [float(Fraction(square, self.total)) for square in self.squares]

    @property
    def square_sum(self) -> Fraction:
        """$z^2$."""
        return Fraction(self.total, self.beta.denominator ** (2 * self.depth))

    def outside(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """Return the share of the lengths below a band, and of those above it."""
        lower = sum(
            s for r, s in enumerate(self.squares, start=1) if r < low * self.depth
        )
        upper = sum(
            s for r, s in enumerate(self.squares, start=1) if r > high * self.depth
        )
        return Fraction(lower, self.total), Fraction(upper, self.total)

    def moments(self) -> tuple[Fraction, Fraction]:
        """Return mean and variance of the length under the squares."""
        lengths = range(1, self.depth + 1)
        first, second = (
            Fraction(
                sum(r**k * s for r, s in zip(lengths, self.squares, strict=True)),
                self.total,
            )
            for k in (1, 2)
        )
        return first, second - first**2
