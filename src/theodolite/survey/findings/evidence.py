"""Numbers of a survey with their errors, and when one is beyond a threshold."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import TypeVar

from theodolite.core import Row

from ..records.finding import Severity
from ..records.outcomes import NOT_RESOLVED, on_samples, samples_of
from ..records.whole_survey import Block, Survey

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """A number and its error; the error of an exact number is 0.

    Attributes:
        value: The number.
        error: Its error.
        samples: Number of samples used and number given, if known.

    Example:
        >>> print(Figure(3.0, 0.1))
        3 ± 0.1
        >>> print(Figure(3.0, 0.1, (8, 256)))
        3 ± 0.1 on 8 of 256 samples
    """

    value: float
    error: float = 0.0
    samples: tuple[int, int] | None = None

    def __str__(self) -> str:
        text = f"{self.value:.3g}" + (f" ± {self.error:.1g}" if self.error else "")
        return text + on_samples(self.samples)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A number and the threshold that it is compared with.

    Attributes:
        figure: The number.
        threshold: The threshold.
        above: Whether the rule fires above the threshold, or below.
        where: Blocks or modules concerned.
        severity: Severity, if it differs from that of the rule.
        detail: A sentence with this network's numbers.
    """

    figure: Figure
    threshold: float
    above: bool
    where: tuple[str, ...] = ()
    severity: Severity | None = None
    detail: str = ""

    @property
    def beyond(self) -> bool:
        """Whether the number is past the threshold by more than its error.

        Example:
            >>> Evidence(figure=Figure(3.0, 1.5), threshold=2.0, above=True).beyond
            False
        """
        value, error = self.figure.value, self.figure.error
        if math.isnan(value) or math.isnan(error):
            return False
        if self.above:
            return value - error > self.threshold
        return value + error < self.threshold


def figure_of(row: Row) -> Figure:
    """Return a row's number; NaN or infinity where it was not finite.

    A finite number without an error counts as unknown, so that no rule fires on it.
    """
    value, error, samples = row.get("value"), row.get("error"), samples_of(row)
    if value is None:
        said = row.get("nonfinite", "nan")
        return Figure(math.nan if said == NOT_RESOLVED else float(said), 0.0, samples)
    error = math.nan if error is None else float(error)
    return Figure(float(value), error, samples)


def single(survey: Survey, quantity: str, **labels: object) -> Figure | None:
    """Return the only number of a quantity, or None."""
    rows = survey.find(quantity, **labels)
    return figure_of(rows[0]) if len(rows) == 1 else None


def by_block(survey: Survey, quantity: str) -> list[tuple[Block, Figure]]:
    """Return the numbers of blocks, in order of depth."""
    figures = {row.get("block"): figure_of(row) for row in survey.find(quantity)}
    return [(b, figures[b.name]) for b in survey.blocks if b.name in figures]


def body(survey: Survey, quantity: str) -> list[tuple[Block, Figure]]:
    """Return the numbers of all blocks except the head, whose outputs are scores."""
    return [(b, f) for b, f in by_block(survey, quantity) if b.kind != "head"]


def by_module(survey: Survey, quantity: str) -> list[tuple[str, Figure]]:
    """Return the numbers of modules, in the order of the rows."""
    rows = survey.find(quantity)
    return [(row["module"], figure_of(row)) for row in rows if "module" in row]


def decades(first: Figure, second: Figure) -> Figure:
    """Return the decimal logarithm of first over second, with its error.

    Example:
        >>> print(decades(Figure(100.0, 1.0), Figure(1.0)))
        2 ± 0.004
    """
    samples = fewest(first, second)
    if unlike(first, second):
        return Figure(math.nan)
    if second.value <= 0 or math.isnan(first.value) or math.isinf(second.value):
        return Figure(math.nan)
    if first.value <= 0 or math.isinf(first.value):
        return Figure(-math.inf if first.value <= 0 else math.inf, 0.0, samples)
    relative = math.hypot(first.error / first.value, second.error / second.value)
    ratio = math.log10(first.value / second.value)
    return Figure(ratio, relative / math.log(10), samples)


def divided(first: Figure, second: Figure) -> Figure:
    """Return a ratio with its error."""
    unknown = unlike(first, second) or math.isnan(first.value + second.value)
    if unknown or second.value == 0:
        return Figure(math.nan)
    ratio = first.value / second.value
    over = abs(second.error * ratio / second.value)
    error = math.hypot(first.error / second.value, over)
    return Figure(ratio, error, fewest(first, second))


def unlike(first: Figure, second: Figure) -> bool:
    """Return whether numbers are of different samples, so that no ratio is taken."""
    known = first.samples is not None and second.samples is not None
    return known and first.samples != second.samples


def fewest(*figures: Figure) -> tuple[int, int] | None:
    """Return the smallest sample count of some numbers."""
    known = [figure.samples for figure in figures if figure.samples is not None]
    return min(known, default=None)


def largest(pairs: Iterable[tuple[T, Figure]]) -> tuple[T, Figure] | None:
    """Return the pair with the largest number; NaN counts as largest."""
    return max(pairs, key=lambda p: _rank(p[1].value, math.inf), default=None)


def smallest(pairs: Iterable[tuple[T, Figure]]) -> tuple[T, Figure] | None:
    """Return the pair with the smallest number; NaN counts as smallest."""
    return min(pairs, key=lambda p: _rank(p[1].value, -math.inf), default=None)


def middle(figures: Sequence[Figure]) -> Figure:
    """Return the lower median."""
    value = median_low([f.value for f in figures])
    return next(f for f in figures if f.value == value)


def _rank(value: float, missing: float) -> float:
    return missing if math.isnan(value) else value
