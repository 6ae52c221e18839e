"""The rows of theory and measurement, and selections of them by quantity and label."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..rows import Row, Rows


@dataclass(frozen=True)
class PredictedAndMeasured:
    """The predicted and the measured rows of one run."""

    predicted: Rows
    measured: Rows

    def __bool__(self) -> bool:
        return bool(len(self.measured))


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
    """

    quantity: str
    labels: Mapping[str, Any] = field(default_factory=dict)
    side: Literal["measured", "predicted"] = "measured"
    test: Callable[[Row], bool] | None = None
    among: Callable[[Rows], Rows] | None = None
    keep: Callable[[Rows], Rows] | None = None
    column: str = "value"
    name: str = ""

    def __call__(self, both: PredictedAndMeasured) -> Rows:
        """Return the rows."""
        rows: Rows = getattr(both, self.side)
        rows = rows if self.among is None else self.among(rows)
        selected = rows.where(self.test, quantity=self.quantity, **self.labels)
        selected = selected if self.keep is None else self.keep(selected)
        if self.column == "value":
            return selected
        return Rows({**row, "value": row.get(self.column)} for row in selected)

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

    def called(self, name: str) -> "Select":
        """Return the selection with a name that reasons use."""
        return replace(self, name=name)

    def __str__(self) -> str:
        labels = ", ".join(
            str(v).replace("_", "-") if isinstance(v, str) else f"{k} {v}"
            for k, v in self.labels.items()
        )
        name = self.name or self.quantity.replace("_", " ")
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
