"""The axis on which a number, its interval and its region are all seen."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from theodolite.core import MINUS, SavedJudgement, format_number, power_of_ten

# Numbers that differ by more than this factor are seen together on logarithms only.
_DECADES = 300.0
# Around the outermost numbers, as shares of their distance.
_ROOM, _ROOM_IN_REGION = 0.08, 0.3
_MOST_TICKS = 5
_LONG_LABEL = 8
# Beyond these, differences and ratios of numbers leave the range of floats.
_FARTHEST, _LAST_POWER = 1e300, 300


@dataclass(frozen=True)
class Scale:
    """A straight, logarithmic or two-sided logarithmic axis.

    Attributes:
        kind: Which.
        low: Left end, after the transformation.
        high: Right end, after the transformation.
        threshold: Where a two-sided logarithm bends into a straight line.
    """

    kind: Literal["linear", "log", "symlog"]
    low: float
    high: float
    threshold: float = 1.0

    def place(self, value: float) -> float:
        """Return where a number lies, in per cent from the left; ends are ends.

        Example:
            >>> Scale("linear", 0.0, 4.0).place(1.0)
            25.0
        """
        if math.isinf(value):
            return 100.0 if value > 0 else 0.0
        share = (self._bent(value) - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)

    def ticks(self) -> list[tuple[float, str]]:
        """Return a few round numbers on the axis with their labels."""
        return (
            _round_steps(self.low, self.high)
            if self.kind == "linear"
            else _thinned(
                [
                    (value, power_of_ten(value))
                    for value in self._powers()
                    if self.low <= self._bent(value) <= self.high
                ]
            )
        )

    def _bent(self, value: float) -> float:
        if self.kind == "linear":
            return value
        if self.kind == "log":
            return math.log10(value) if value > 0 else self.low
        ratio = math.log10(abs(value)) - math.log10(self.threshold) if value else -1.0
        bent = ratio if ratio > 100 else math.log10(1 + abs(value) / self.threshold)
        return math.copysign(bent, value)

    def _powers(self) -> list[float]:
        if self.kind == "log":
            return _powers(math.ceil(self.low), math.floor(self.high))
        far = max(abs(self.low), abs(self.high)) + math.log10(self.threshold)
        first = math.ceil(math.log10(self.threshold) + 0.5)
        right = _powers(first, math.floor(far))
        return [*(-value for value in reversed(right)), 0.0, *right]


def _powers(first: int, last: int) -> list[float]:
    powers = range(max(first, -_LAST_POWER), min(last, _LAST_POWER) + 1)
    return [10.0**power for power in powers]


def scale_for(leaves: Iterable[SavedJudgement]) -> Scale:
    """Choose the axis for numbers that share one region.

    Straight, unless what matters (the estimates, or half of their intervals where
    that is more, and the ends of the region) lies decades apart.
    """
    found = list(leaves)
    regions = [leaf.region for leaf in found if leaf.region is not None]
    ends = [end for one in regions for end in (one.low, one.high) if math.isfinite(end)]
    rows = [
        [number for number in (leaf.value, leaf.low, leaf.high) if number is not None]
        for leaf in found
    ]
    numbers = [
        min(max(number, -_FARTHEST), _FARTHEST)
        for number in (*ends, *(number for row in rows for number in row))
    ]
    weights = [abs(end) for end in ends] + [_weight(row) for row in rows]
    weights = [weight for weight in weights if weight > 0]
    if not numbers or not weights:
        return Scale("linear", -1.0, 1.0)
    if max(weights) / min(weights) <= _DECADES:
        return _with_room("linear", numbers, regions)
    kind = "log" if min(numbers) > 0 else "symlog"
    return _with_room(kind, numbers, regions, threshold=min(weights))


def _weight(row: Sequence[float]) -> float:
    """Return the size that a number and its interval have on the axis."""
    return max((abs(number) for number in row), default=0.0)


def _with_room(
    kind: Literal["linear", "log", "symlog"],
    numbers: Sequence[float],
    regions: Sequence,
    threshold: float = 1.0,
) -> Scale:
    bent = [Scale(kind, 0.0, 1.0, threshold)._bent(number) for number in numbers]
    low, high = min(bent), max(bent)
    wide = high - low or max(abs(low), 1.0)
    # A region without an end on one side is seen to go on there.
    left = any(math.isinf(region.low) for region in regions)
    right = any(math.isinf(region.high) for region in regions)
    return Scale(
        kind,
        low - wide * (_ROOM_IN_REGION if left else _ROOM),
        high + wide * (_ROOM_IN_REGION if right else _ROOM),
        threshold,
    )


def _round_steps(low: float, high: float) -> list[tuple[float, str]]:
    rough = (high - low) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return _thinned(
        [(i * step, _label(i * step, places)) for i in range(first, last + 1)]
    )


def _label(value: float, places: int) -> str:
    """Write a tick to the digits of its step."""
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or (abs(value) < 1e-3 and places > 4):
        return format_number(float(f"{value:.6g}"))
    return f"{value:.{places}f}".replace("-", MINUS)


def _thinned(ticks: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Keep few enough that their labels do not meet, zero among them."""
    long = max((len(label) for _, label in ticks), default=0) > _LONG_LABEL
    most = 3 if long else _MOST_TICKS
    every = math.ceil(len(ticks) / most) if ticks else 1
    zero = next((place for place, (value, _) in enumerate(ticks) if value == 0), 0)
    return [tick for place, tick in enumerate(ticks) if (place - zero) % every == 0]
