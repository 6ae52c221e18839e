"""What a claim speaks of: rows of both sides by quantity and label, and a region.

Rows are predicted or measured; a region is the range that is stated for a number. A
comparison sets numbers of one side beside those of the other.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from string import Formatter
from typing import Any, Literal

from ..errors import ConfigError
from ..rows import Row, Rows, compared_row, sortable
from ..statistics import group_means

# Tables of rows that a pair of both sides keeps for later selections.
_KEPT = 64
# What quantities are called while a claim is judged, where it is not their own name.
_WORDS: ContextVar[Mapping[str, str] | None] = ContextVar("words", default=None)


@contextmanager
def calling(words: Mapping[str, str]) -> Iterator[None]:
    """Call quantities by words in the names of all numbers that are read inside."""
    token = _WORDS.set(words)
    try:
        yield
    finally:
        _WORDS.reset(token)


@dataclass(frozen=True)
class PredictedAndMeasured:
    """The predicted and the measured rows of one run."""

    predicted: Rows
    measured: Rows

    def __bool__(self) -> bool:
        return bool(len(self.measured))

    def among(self, side: str, among: Callable[[Rows], Rows]) -> Rows:
        """Return what a function makes of all rows of a side, computed once.

        Many readings of a claim select from the same rows.
        """
        kept: dict[Any, Rows] = vars(self).setdefault("_among", {})
        key = side, among
        if key not in kept:
            while len(kept) >= _KEPT:  # functions made for one selection do not return
                kept.pop(next(iter(kept)))
            kept[key] = among(getattr(self, side))
        return kept[key]


@dataclass(frozen=True)
class Select:
    """Select predicted or measured rows by quantity and labels.

    Attributes:
        quantity: Name of the quantity.
        labels: Labels that rows must carry.
        side: Which rows: predicted or measured.
        test: Function that each row must also pass.
        among: Function from all rows of the side to those to select from, such as the
            last readings of networks that trained to the end.
        keep: Function that keeps some of the selected rows, such as resolved depths.
        column: Which column of the rows is the value.
        name: Name in the reasons; by default the study's words for the value.
        log: Whether values are decimal logarithms of the rows' values.
    """

    quantity: str
    labels: Mapping[str, Any] = field(default_factory=dict)
    side: Literal["measured", "predicted"] = "measured"
    test: Callable[[Row], bool] | None = None
    among: Callable[[Rows], Rows] | None = None
    keep: Callable[[Rows], Rows] | None = None
    column: str = "value"
    name: str = ""
    log: bool = False

    def __call__(self, both: PredictedAndMeasured) -> Rows:
        """Return the rows."""
        rows: Rows = getattr(both, self.side)
        rows = rows if self.among is None else both.among(self.side, self.among)
        selected = rows.where(self.test, quantity=self.quantity, **self.labels)
        selected = selected if self.keep is None else self.keep(selected)
        if self.column != "value":
            selected = Rows({**r, "value": r.get(self.column)} for r in selected)
        return Rows(map(_log10_row, selected)) if self.log else selected

    def out_of(self, among: Callable[[Rows], Rows]) -> "Select":
        """Return the selection from the rows that ``among`` returns for all rows."""
        return replace(self, among=among)

    def keeping(self, keep: Callable[[Rows], Rows]) -> "Select":
        """Return the selection with ``keep`` applied to its rows."""
        return replace(self, keep=keep)

    def at(self, **labels: Any) -> "Select":
        """Return the selection with further labels."""
        return replace(self, labels={**self.labels, **labels})

    def reading(self, column: str) -> "Select":
        """Return the selection with another column as its value."""
        return replace(self, column=column)

    def log10(self) -> "Select":
        """Return the selection in decimal logarithms, for positive quantities.

        A value that is not positive becomes NaN, which leaves a mean open.
        """
        return replace(self, log=True)

    def called(self, name: str) -> "Select":
        """Return the selection with a name that reasons use."""
        return replace(self, name=name)

    def __str__(self) -> str:
        labels = ", ".join(
            str(v).replace("_", "-")
            if isinstance(v, str)
            else f"{k.replace('_', ' ')} {v}"
            for k, v in self.labels.items()
        )
        read = self.quantity if self.column == "value" else self.column
        called = self.name or (_WORDS.get() or {}).get(read)
        name = called or read.replace("_", " ")
        name = f"log10 {name}" if self.log else name
        return f"{name} ({labels})" if labels else name


def measured(
    quantity: str, test: Callable[[Row], bool] | None = None, **labels: Any
) -> Select:
    """Select measured rows."""
    return Select(quantity, labels, "measured", test)


def predicted(
    quantity: str, test: Callable[[Row], bool] | None = None, **labels: Any
) -> Select:
    """Select predicted rows."""
    return Select(quantity, labels, "predicted", test)


def log10_of(value: float, error: float) -> tuple[float, float]:
    """Return the decimal logarithm of a number, and the bound on its error."""
    if not value > 0:
        return math.nan, 0.0
    if error >= value:
        return math.log10(value), math.inf
    return math.log10(value), -math.log10(1 - error / value)


def _log10_row(row: Row) -> Row:
    value, error = row.get("value"), row.get("error", 0.0)
    number = math.nan if value is None else float(value)
    size, bound = log10_of(number, 0.0 if error is None else abs(float(error)))
    return {**row, "value": size, "error": None if error is None else bound}


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


# What a line is called, its measured rows and its predicted ones.
Line = tuple[str, Select] | tuple[str, Select, Select]


def beside(*lines: Line) -> Callable[[PredictedAndMeasured], list[Row]]:
    """Return a study's comparison: predicted numbers beside means over networks.

    Args:
        lines: What a line is called, with labels in braces; the measured rows, a line
            for each set of these labels; and the predicted rows, by default those of
            the same quantity. Labels of a line that predicted rows have match them;
            measured rows without a prediction are left out.

    Example:
        >>> from theodolite.core import Rows, measured
        >>> law = Rows([{"quantity": "gap", "depth": 2, "value": 1.0}])
        >>> rows = Rows({"quantity": "gap", "depth": d, "value": 1.1, "error": 0.2}
        ...             for d in (2, 4))
        >>> both = PredictedAndMeasured(law, rows)
        >>> beside(("gap, depth {depth}", measured("gap")))(both)
        [{'label': 'gap, depth 2', 'predicted': 1.0, 'measured': 1.1, 'error': 0.2}]
    """

    def compare(both: PredictedAndMeasured) -> list[Row]:
        return [
            row
            for line in lines
            for row in _compared(both, *line[:2], line[2] if len(line) > 2 else None)
        ]

    return compare


def _compared(
    both: PredictedAndMeasured, title: str, rows: Select, law: Select | None
) -> list[Row]:
    by = [field for _, field, _, _ in Formatter().parse(title) if field]
    same = Select(rows.quantity, side="predicted", log=rows.log)
    found, foretold = rows(both), (law or same)(both)
    known = {label for row in foretold for label in row}
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in found:
        groups.setdefault(tuple(row.get(label) for label in by), []).append(row)
    table: list[Row] = []
    for key in sorted(groups, key=lambda key: [sortable(value) for value in key]):
        labels, group = dict(zip(by, key, strict=True)), groups[key]
        chosen = {**rows.labels, **labels}
        numbers = foretold.where(**{k: v for k, v in chosen.items() if k in known})
        if not len(numbers):
            continue
        words = {
            label: value.replace("_", "-") if isinstance(value, str) else value
            for label, value in labels.items()
        }
        value = float(numbers.values().mean())
        number = group[0] if len(group) == 1 else group_means(Rows(group), by)[0]
        table.append(compared_row(title.format(**words), value, number))
    return table
