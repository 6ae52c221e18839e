"""Scales: map numbers to positions along a line, with round ticks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from theodolite.core import Region

from .numbers import MINUS, format_number, tick_label

# Numbers that differ by more than this factor need a logarithmic scale.
_LOG_RATIO = 300.0
# Space around the outermost numbers, as shares of their distance.
_ROOM, _ROOM_IN_REGION = 0.08, 0.3
_LONG_LABEL = 8
# Beyond these, differences and ratios of numbers leave the range of floats.
_FARTHEST, _LAST_POWER = 1e300, 300

Kind = Literal["linear", "log", "symlog"]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A linear, logarithmic or two-sided logarithmic scale.

    Attributes:
        kind: Which of the three.
        low: Smallest number shown, after the transformation.
        high: Largest number shown, after the transformation.
        start: Place of the smallest.
        end: Place of the largest.
        threshold: Size below which a two-sided logarithm is a straight line.
    """

    kind: Kind = "linear"
    low: float
    high: float
    start: float = 0.0
    end: float = 100.0
    threshold: float = 1.0

    def __call__(self, value: float) -> float:
        """Return the position of a number; numbers beyond an end are put at the end.

        Example:
            >>> Scale(low=0.0, high=4.0)(1.0)
            25.0
        """
        if math.isinf(value):
            return self.end if value > 0 else self.start
        share = (self._transformed(value) - self.low) / (self.high - self.low)
        share = 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0)
        return self.start + share * (self.end - self.start)

    def widened(self, below: float, above: float) -> "Scale":
        """Return the scale with more space, as shares of what it shows."""
        wide = self.high - self.low
        return replace(self, low=self.low - below * wide, high=self.high + above * wide)

    def ticks(self, n: int = 5) -> list[tuple[float, str]]:
        """Return about ``n`` round numbers within the scale, with their labels."""
        if self.kind == "symlog":
            values = self._powers_both_ways()
        else:
            values = _decades(self.low, self.high, n) if self.kind == "log" else []
        ticks = [(value, tick_label(value)) for value in values]
        if len(ticks) < 2 and self.kind == "linear":
            ticks = _even_ticks(self.low, self.high, n)
        elif len(ticks) < 2:  # within a factor of two a logarithm is nearly even
            ticks = _even_ticks(_power(self.low), _power(self.high), n)
        # Labels must not meet. Zero stays if it is among the ticks.
        long = max((len(label) for _, label in ticks), default=0) > _LONG_LABEL
        every = math.ceil(len(ticks) / (3 if long else n + 1)) or 1
        zero = next((i for i, (value, _) in enumerate(ticks) if value == 0), 0)
        return [tick for i, tick in enumerate(ticks) if (i - zero) % every == 0]

    def _transformed(self, value: float) -> float:
        if self.kind == "linear":
            return value
        if self.kind == "log":
            return math.log10(value) if value > 0 else self.low
        ratio = math.log10(abs(value)) - math.log10(self.threshold) if value else -1.0
        bent = ratio if ratio > 100 else math.log10(1 + abs(value) / self.threshold)
        return math.copysign(bent, value)

    def _powers_both_ways(self) -> list[float]:
        bend = math.log10(self.threshold)
        far = min(math.floor(max(-self.low, self.high) + bend), _LAST_POWER)
        first = max(math.ceil(bend + 0.5), -_LAST_POWER)
        right = [10.0**power for power in range(first, far + 1)]
        values = [*(-value for value in reversed(right)), 0.0, *right]
        return [v for v in values if self.low <= self._transformed(v) <= self.high]


def scale_of(
    values: Iterable[float | None],
    start: float,
    end: float,
    *,
    log: bool = False,
    within: Iterable[float] = (),
) -> Scale:
    """Return the scale of a chart that shows these numbers.

    Args:
        values: The numbers; those that are not finite are left out, and on a
            logarithmic scale those that are not positive.
        start: Place of the smallest.
        end: Place of the largest.
        log: Whether the scale is logarithmic.
        within: Further numbers to show, such as a line of reference.
    """
    shown = [
        float(one)
        for one in (*values, *within)
        if one is not None and math.isfinite(one) and (one > 0 or not log)
    ]
    low, high = min(shown, default=1.0), max(shown, default=1.0)
    if log:
        low, high = math.log10(low), math.log10(high)
        pad = max((high - low) * 0.04, 0.02 if high - low > math.log10(2) else 0.15)
        low, high = low - pad, high + pad
    elif high == low:
        low, high = low - (abs(low) or 1.0) * 0.5, high + (abs(high) or 1.0) * 0.5
    return Scale(
        kind="log" if log else "linear", low=low, high=high, start=start, end=end
    )


def interval_scale(
    intervals: Iterable[Sequence[float | None]], regions: Sequence[Region]
) -> Scale:
    """Return the scale, in per cent, that shows intervals and regions together.

    It is linear unless what matters (the largest number of each interval, and the
    ends of the regions) lies decades apart.

    Args:
        intervals: A value and the ends of its interval; None is no number, or no end.
        regions: Regions of which every end is shown. If a region has no end on one
            side, more space there shows that it goes on.
    """
    rows = [[one for one in interval if one is not None] for interval in intervals]
    ends = [end for one in regions for end in (one.low, one.high) if math.isfinite(end)]
    numbers = [
        min(max(number, -_FARTHEST), _FARTHEST)
        for number in (*ends, *(number for row in rows for number in row))
    ]
    sizes = [abs(end) for end in ends]
    sizes += [max(abs(number) for number in row) for row in rows if row]
    sizes = [size for size in sizes if size > 0]
    if not numbers or not sizes:
        return Scale(low=-1.0, high=1.0)
    kind: Kind = "linear"
    if max(sizes) / min(sizes) > _LOG_RATIO:
        kind = "log" if min(numbers) > 0 else "symlog"
    scale = Scale(kind=kind, low=0.0, high=1.0, threshold=min(sizes))
    shown = [scale._transformed(number) for number in numbers]
    low, high = min(shown), max(shown)
    wide = high - low or max(abs(low), 1.0)
    left = any(math.isinf(region.low) for region in regions)
    right = any(math.isinf(region.high) for region in regions)
    return replace(
        scale,
        low=low - wide * (_ROOM_IN_REGION if left else _ROOM),
        high=high + wide * (_ROOM_IN_REGION if right else _ROOM),
    )


def spans_decades(values: Iterable[float | None]) -> bool:
    """Return whether positive numbers differ so much that a logarithm is needed.

    Example:
        >>> spans_decades([1, 1000]), spans_decades([1, 2]), spans_decades([0, 1e9])
        (True, False, False)
    """
    shown = [v for v in values if v is not None and math.isfinite(v)]
    if not shown or min(shown) <= 0:
        return False
    return math.log10(max(shown) / min(shown)) > 1.5


def _even_ticks(low: float, high: float, n: int) -> list[tuple[float, str]]:
    step, first, last = 1.0, 0, 0
    for count in range(n, n + 5):
        rough = (high - low) / count
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough * 0.999)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last > first:
            break
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    values = [i * step for i in range(first, last + 1)]
    return [(value, _even_label(value, places)) for value in values]


def _even_label(value: float, places: int) -> str:
    """Return a tick's label, with as many decimals as the step between ticks has."""
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or (abs(value) < 1e-3 and places > 4):
        return format_number(float(f"{value:.6g}"))
    return f"{value:.{places}f}".replace("-", MINUS)


def _decades(low: float, high: float, n: int) -> list[float]:
    """Return powers of ten between two exponents, with numbers between if few."""
    finer: list[float] = []
    first, last = (max(-_LAST_POWER, min(e, _LAST_POWER)) for e in (low, high))
    powers = range(math.floor(first), math.ceil(last) + 1)
    for factors, stride in (
        ((1, 2, 5), 1),
        ((1, 3), 1),
        *(((1,), stride) for stride in (1, 2, 3, 5, 10, 20, 50, 100, 200)),
    ):
        values = [
            float(f"{factor}e{power}")
            for power in powers
            for factor in factors
            if power % stride == 0
            and low - 1e-3 <= power + math.log10(factor) <= high + 1e-3
        ]
        if len(values) < 2 and finer:
            return finer
        if len(values) <= n + 1:
            return values
        finer = values
    return finer


def _power(exponent: float) -> float:
    return 10.0 ** max(-_LAST_POWER, min(exponent, _LAST_POWER))
