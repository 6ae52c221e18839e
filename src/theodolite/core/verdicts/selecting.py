"""The rows of theory and measurement, and selections of them by quantity and label."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..rows import Row, Rows

# Tables of rows that a pair of both sides keeps for later selections.
_KEPT = 64


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
        name: Name in the reasons; the quantity and labels by default.
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
        return replace(self, column=column, name=self.name or column.replace("_", " "))

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
            str(v).replace("_", "-") if isinstance(v, str) else f"{k} {v}"
            for k, v in self.labels.items()
        )
        name = self.name or self.quantity.replace("_", " ")
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
