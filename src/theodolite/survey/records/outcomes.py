"""What became of one measure."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from theodolite.core import Cost, Row, Rows, plain, unknown_name

MeasureStatus = Literal[
    "done", "partial", "skipped", "refused", "failed", "interrupted"
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The outcome of one measure: its rows, or why there are none.

    A row has ``measure``, ``quantity``, ``value``, ``error``, ``norm_mode``, ``seed``
    and its labels. A value that is not finite is None, and ``nonfinite`` says what it
    was, so that rows are strict JSON.

    Attributes:
        measure: Its name.
        status: ``"done"``; ``"partial"``, stopped by its allowance; ``"skipped"``, the
            budget did not reach; ``"refused"``, this model has not what it takes;
            ``"failed"``; or ``"interrupted"``.
        reason: One sentence where it is not done; of a skipped one what it would take.
        rows: What was measured.
        cost: What it cost.
        forecast_s: Seconds that it was expected to take.
    """

    measure: str
    status: MeasureStatus
    reason: str = ""
    rows: Rows = field(default_factory=Rows)
    cost: Cost = field(default_factory=Cost)
    forecast_s: float = 0.0

    def __post_init__(self) -> None:
        if self.status not in (known := get_args(MeasureStatus)):
            raise unknown_name("status of a measure", self.status, known)
        rows = Rows(_finite(row) for row in self.rows)
        object.__setattr__(self, "rows", rows)


def _finite(row: Row) -> dict[str, Any]:
    """Return a row of strict JSON."""
    found = dict(plain(row))
    if _unbounded(found.get("value")):
        found = {**found, "value": None, "nonfinite": str(row["value"])}
    if _unbounded(found.get("error")):
        found = {**found, "error": None}
    return found


def _unbounded(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
