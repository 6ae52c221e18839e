"""The outcome of one measure."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from theodolite.core import Cost, Row, Rows, to_json_values, unknown_name

MeasureStatus = Literal[
    "done", "partial", "skipped", "refused", "failed", "interrupted", "out of time"
]

# Text in a row in place of a number whose error is as large as the number.
NOT_RESOLVED = "not resolved"
# Quantities that mean nothing without an error.
_ITERATED = frozenset(
    "largest_eigenvalue smallest_eigenvalue stable_rate rate_over_stable".split()
)
# Those that mean nothing if their error bar includes zero.
_AWAY_FROM_ZERO = _ITERATED | {"loss"}
# Statuses of numbers that more effort would change.
_UNFINISHED = ("max_matvecs", "incomplete", "nonfinite", "diverged")
# An error above this, and above its number, says nothing about the number.
_VOID = 1e100


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


def is_resolved(row: Row) -> bool:
    """Return whether a number is larger than its error, where it has to be.

    Example:
        >>> is_resolved({"quantity": "loss", "value": 0.8, "error": 340.0})
        False
    """
    value, error = row.get("value"), row.get("error")
    if value is None or not error or row.get("quantity") not in _AWAY_FROM_ZERO:
        return value is not None
    return abs(value) >= error


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


def identity_of(row: Row) -> tuple[str, str, str]:
    """Return what numbers must share to be of one quantity, each in words.

    These are the samples behind it, the statistics that norms used, and whether it
    converged; each is empty if it is unknown or does not matter.

    Example:
        >>> row = {"n_samples": 8, "of_samples": 256, "norm_mode": "eval"}
        >>> identity_of({**row, "status": "max_matvecs"})
        ('8 of 256 samples', 'norms in eval mode', 'not converged')
    """
    samples = samples_of(row)
    if samples is None:
        return "", "", _converged(row)
    parts = f", in parts of {row['n_samples']}" if "n_parts" in row else ""
    mode = str(row.get("norm_mode", ""))
    modes = re.findall(r"in (\w+)", str(row.get("norm_layers", "")))
    if mode == "as_is":
        mode = " and ".join(sorted(set(modes)))
    norms = f"norms in {mode} mode" if mode else ""
    return f"{samples[0]} of {samples[1]} samples{parts}", norms, _converged(row)


def _converged(row: Row) -> str:
    if "status" not in row:
        return ""
    return "not converged" if row["status"] in _UNFINISHED else "converged"


def unlike(one: Row, other: Row) -> tuple[str, str]:
    """Return how two numbers differ as quantities, in words; empty if they do not."""
    pairs = zip(identity_of(one), identity_of(other), strict=True)
    apart = [(a, b) for a, b in pairs if a and b and a != b]
    return ", ".join(a for a, _ in apart), ", ".join(b for _, b in apart)


def on_fewest(rows: Iterable[Row]) -> str:
    """Return words for the smallest sample count of rows, empty if all were used."""
    return on_samples(min(filter(None, map(samples_of, rows)), default=None))


def _finite(row: Row) -> dict[str, Any]:
    """Return the row as strict JSON values."""
    finite = dict(to_json_values(row))
    if _unbounded(finite.get("value")):
        said = finite.get("nonfinite", str(row["value"]))
        finite = {**finite, "value": None, "nonfinite": said}
    value, error = finite.get("value"), finite.get("error")
    if isinstance(value, float) and isinstance(error, float):
        void = max(abs(value), _VOID) < error < math.inf
        if void or (_unbounded(error) and finite.get("quantity") in _ITERATED):
            finite = {**finite, "value": None, "nonfinite": NOT_RESOLVED}
    if _unbounded(error):
        finite = {**finite, "error": None}
    return finite


def _unbounded(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
