"""The outcome of one measure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from theodolite.core import Cost, Row, Rows, to_json_values, unknown_name

MeasureStatus = Literal[
    "done", "partial", "skipped", "refused", "failed", "interrupted", "out of time"
]

# Text in a row in place of a number whose error is as large as the number.
NOT_RESOLVED = "not resolved"


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The outcome of one measure: its rows, or why there are none.

    A row has ``measure``, ``quantity``, ``value``, ``error``, ``norm_mode``, ``seed``
    and its labels. A value that is not finite is None, so that rows are strict JSON;
    ``nonfinite`` says what it was, or that it is not resolved. ``n_samples`` and
    ``of_samples`` say how many samples were used, and how many were given.

    Attributes:
        measure: Its name.
        status: ``"done"``; ``"partial"``, the model made it stop early; ``"skipped"``,
            the effort was too small; ``"refused"``, it does not apply to this model;
            ``"failed"``; ``"interrupted"`` by Ctrl-C; or ``"out of time"``.
        reason: One sentence if it is not done; if skipped, the effort that it needs.
        rows: The measured rows.
        cost: Its cost.
    """

    measure: str
    status: MeasureStatus
    reason: str = ""
    rows: Rows = field(default_factory=Rows)
    cost: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        if self.status not in (known := get_args(MeasureStatus)):
            raise unknown_name("status of a measure", self.status, known)
        rows = Rows(_finite(row) for row in self.rows)
        object.__setattr__(self, "rows", rows)


def samples_of(row: Row) -> tuple[int, int] | None:
    """Return how many samples a row used, and how many were given; None if unknown.

    Example:
        >>> samples_of({"n_samples": 2, "n_parts": 4, "of_samples": 256})
        (8, 256)
    """
    taken, parts, given = map(row.get, ("n_samples", "n_parts", "of_samples"))
    if not isinstance(taken, int) or not isinstance(given, int):
        return None
    return taken * (parts if isinstance(parts, int) else 1), given


def on_samples(samples: tuple[int, int] | None) -> str:
    """Return words for the samples used, empty if all were used.

    Example:
        >>> on_samples((8, 256)), on_samples((256, 256)), on_samples(None)
        (' on 8 of 256 samples', '', '')
    """
    if samples is None or samples[0] >= samples[1]:
        return ""
    return f" on {samples[0]} of {samples[1]} samples"


def on_fewest(rows: Iterable[Row]) -> str:
    """Return words for the smallest sample count of rows, empty if all were used."""
    return on_samples(min(filter(None, map(samples_of, rows)), default=None))


def _finite(row: Row) -> dict[str, Any]:
    """Return the row as strict JSON values."""
    finite = dict(to_json_values(row))
    if _unbounded(finite.get("value")):
        said = finite.get("nonfinite", str(row["value"]))
        finite = {**finite, "value": None, "nonfinite": said}
    if _unbounded(finite.get("error")):
        finite = {**finite, "error": None}
    return finite


def _unbounded(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
