"""The range that a claim states for a number, and the source of its ends."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import ConfigError

# The paper, our choice where the paper gives no region, or a bound on rounding.
_ENDS = (-math.inf, math.inf)
Source = Literal["paper", "ours", "rounding"]


@dataclass(frozen=True, kw_only=True)
class Region:
    """An interval of the line that a number is claimed to lie in.

    Attributes:
        low: Lower end, minus infinity for none.
        high: Upper end, infinity for none.
        low_open: Whether the lower end itself is outside.
        high_open: Whether the upper end itself is outside.
        source: Source of the ends.
        why: The reason, where the ends are ours.

    Example:
        >>> str(near(1, 0.1, source="ours", why="a tenth is what one would notice"))
        '[0.9, 1.1]'
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = True
    high_open: bool = True
    source: Source = "paper"
    why: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ConfigError(
                f"a region from {self.low} to {self.high} is empty: pass low <= high"
            )
        if math.isinf(self.low) and math.isinf(self.high):
            raise ConfigError("a region without any end claims nothing: pass one")
        if self.source == "ours" and not self.why:
            raise ConfigError(
                f"the region {self} is ours and does not say why: pass why=…"
            )

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"{'<' if self.high_open else '≤'} {self.high:.4g}"
        if math.isinf(self.high):
            return f"{'>' if self.low_open else '≥'} {self.low:.4g}"
        left, right = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"{left}{self.low:.4g}, {self.high:.4g}{right}"

    @property
    def two_sided(self) -> bool:
        """Whether the region ends on both sides."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def contains(self, low: float, high: float) -> bool:
        """Whether all of an interval lies inside."""
        above = low > self.low or (low == self.low and not self.low_open)
        below = high < self.high or (high == self.high and not self.high_open)
        return above and below

    def misses(self, low: float, high: float) -> bool:
        """Whether all of an interval lies outside."""
        above = low > self.high or (low == self.high and self.high_open)
        below = high < self.low or (high == self.low and self.low_open)
        return above or below

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; an end that is missing is left out."""
        return {name: value for name, value in vars(self).items() if value not in _ENDS}


def above(low: float, *, source: Source = "paper", why: str = "") -> Region:
    """Return the region of all numbers greater than ``low``."""
    return Region(low=low, source=source, why=why)


def below(high: float, *, source: Source = "paper", why: str = "") -> Region:
    """Return the region of all numbers less than ``high``."""
    return Region(high=high, source=source, why=why)


def between(
    low: float, high: float, *, source: Source = "paper", why: str = ""
) -> Region:
    """Return the region from one number to another, both included."""
    return Region(
        low=low, high=high, low_open=False, high_open=False, source=source, why=why
    )


def near(
    centre: float, margin: float, *, source: Source = "paper", why: str = ""
) -> Region:
    """Return the region within a margin of a number; margin 0 is the number alone."""
    return between(centre - margin, centre + margin, source=source, why=why)
