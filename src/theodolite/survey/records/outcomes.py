"""What became of one measure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from theodolite.core import Cost, Row, Rows, to_json_values, unknown_name

MeasureStatus = Literal[
    "done", "partial", "skipped", "refused", "failed", "interrupted"
]

# What a row says in place of a number whose error is as large as itself.
NOT_RESOLVED = "not resolved"


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The outcome of one measure: its rows, or why there are none.

    A row has ``measure``, ``quantity``, ``value``, ``error``, ``norm_mode``, ``seed``
    and its labels. A value that is not finite is None, and ``nonfinite`` says what it
    was, or that it is not resolved, so that rows are strict JSON. ``n_samples`` and
    ``of_samples`` say on how many of the samples given a number was taken.

    Attributes:
        measure: Its name.
        status: ``"done"``; ``"partial"``, stopped by its allowance; ``"skipped"``, the
            budget did not reach; ``"refused"``, this model cannot be measured so;
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


def samples_of(row: Row) -> tuple[int, int] | None:
    """Return how many samples a row used, of how many; None if it does not say.

    Example:
        >>> samples_of({"n_samples": 2, "n_parts": 4, "of_samples": 256})
        (8, 256)
    """
    taken, parts, given = map(row.get, ("n_samples", "n_parts", "of_samples"))
    if not isinstance(taken, int) or not isinstance(given, int):
        return None
    return taken * (parts if isinstance(parts, int) else 1), given


def on_samples(samples: tuple[int, int] | None) -> str:
    """Return words for a number that was not taken on all samples, else nothing.

    Example:
        >>> on_samples((8, 256)), on_samples((256, 256)), on_samples(None)
        (' on 8 of 256 samples', '', '')
    """
    if samples is None or samples[0] >= samples[1]:
        return ""
    return f" on {samples[0]} of {samples[1]} samples"


def on_fewest(rows: Iterable[Row]) -> str:
    """Return words for the fewest samples that a row was taken on, if not on all."""
    return on_samples(min(filter(None, map(samples_of, rows)), default=None))


def _finite(row: Row) -> dict[str, Any]:
    """Return a row of strict JSON."""
    finite = dict(to_json_values(row))
    if _unbounded(finite.get("value")):
        said = finite.get("nonfinite", str(row["value"]))
        finite = {**finite, "value": None, "nonfinite": said}
    if _unbounded(finite.get("error")):
        finite = {**finite, "error": None}
    return finite


def _unbounded(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
