"""Scales from numbers to places, with round ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# A logarithmic axis never spans more than this many decades below its largest value.
_DECADES = 12


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A map from numbers to a line of the drawing.

    Attributes:
        low: Smallest number shown.
        high: Largest number shown.
        start: Place of the smallest.
        end: Place of the largest.
        log: Whether equal ratios are equally far apart.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a number, at the border for what lies beyond."""
        low, high = self._on(self.low), self._on(self.high)
        share = (self._on(value) - low) / ((high - low) or 1.0)
        share = min(1.0, max(0.0, share)) if not math.isnan(share) else 0.0
        return self.start + share * (self.end - self.start)

    def ticks(self, n: int) -> list[float]:
        """Return about this many round numbers within the scale."""
        found = _decades(self.low, self.high, n) if self.log else []
        # Within a factor of two or so a logarithmic axis is nearly even.
        for count in range(n, n + 5) if len(found) < 2 else ():
            found = _steps(self.low, self.high, count)
            if len(found) > 1:
                break
        return found

    def _on(self, value: float) -> float:
        if not self.log:
            return value
        return math.log10(max(value, self.low * 1e-3))


def scale_of(
    values: Iterable[float | None],
    start: float,
    end: float,
    *,
    log: bool = False,
    within: Iterable[float] = (),
) -> Scale:
    """Return the scale that holds these numbers.

    Args:
        values: What is shown; what is not finite is left out, and so is what is not
            positive on a logarithmic scale.
        start: Place of the smallest.
        end: Place of the largest.
        log: Whether the scale is logarithmic.
        within: Further numbers to hold, such as a line of reference.
    """
    shown = [
        float(one)
        for one in (*values, *within)
        if one is not None and math.isfinite(one) and (one > 0 or not log)
    ]
    low, high = min(shown, default=1.0), max(shown, default=1.0)
    if log:
        low = max(low, high * 10.0**-_DECADES)
        pad = max(math.log10(high / low) * 0.04, 0.15 if high / low < 2 else 0.02)
        low, high = low / 10**pad, high * 10**pad
    elif high == low:
        low, high = low - (abs(low) or 1.0) * 0.5, high + (abs(high) or 1.0) * 0.5
    return Scale(low=low, high=high, start=start, end=end, log=log)


def spans_decades(values: Iterable[float | None], decades: float = 1.5) -> bool:
    """Say whether positive numbers differ so much that only ratios show them all.

    Example:
        >>> spans_decades([1, 1000]), spans_decades([1, 2]), spans_decades([0, 1e9])
        (True, False, False)
    """
    shown = [v for v in values if v is not None and math.isfinite(v)]
    if not shown or min(shown) <= 0:
        return False
    return math.log10(max(shown) / min(shown)) > decades


def _steps(low: float, high: float, n: int) -> list[float]:
    rough = (high - low) / max(n, 1)
    if not rough > 0 or not math.isfinite(rough):
        return [low]
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * one for one in (1, 2, 5, 10) if unit * one >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.10g}") for k in range(first, last + 1)]


def _decades(low: float, high: float, n: int) -> list[float]:
    """Return powers of ten, with numbers between where there are few of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    finest: list[float] = []
    for factors, stride in (
        ((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 5),
    ):  # fmt: skip
        powers = [p for p in range(first, last + 1) if p % stride == 0]
        found = [float(f"{f}e{p}") for p in powers for f in factors]
        found = [one for one in found if low * 0.999 <= one <= high * 1.001]
        if len(found) < 2 and finest:
            return finest
        if len(found) <= n + 1:
            return found
        finest = found
    return finest
