"""Rows of surveys as lines of a table."""

from collections.abc import Iterable
from typing import Any

from theodolite.core import Row
from theodolite.pages import short_number

from ..records.outcomes import NOT_RESOLVED, is_resolved, on_samples, samples_of
from ..records.words import word

# Labels that say which number a row is, in the order in which a table shows them.
_LABELS = ("block", "module", "optimizer", "rank", "rate", "step", "factor", "rule")
_NAMES = ("block", "module", "optimizer", "rule")


def value_of(row: Row) -> float | None:
    """Return a row's number, None if it has none."""
    value = row.get("value")
    return float(value) if isinstance(value, int | float) else None


def error_of(row: Row) -> float | None:
    """Return a row's error, None if it has none."""
    error = row.get("error")
    return float(error) if isinstance(error, int | float) else None


def written(quantity: str, value: float, error: float | None = None) -> str:
    """Write a number with its error in the unit of its quantity.

    Example:
        >>> written("dead_share", 0.469, 0.011), written("loss", 2.3)
        ('46.9 ± 1.1 %', '2.3')
    """
    of = word(quantity)
    short = short_number(
        of.factor * value, None if error is None else of.factor * error
    )
    return f"{short} {of.unit}".strip()


def written_value(row: Row) -> str:
    """Write a row's number with its error, and its samples if they are not all."""
    value, on = value_of(row), on_samples(samples_of(row))
    if value is None:
        return str(row.get("nonfinite", "—")) + on
    number = written(str(row["quantity"]), value, error_of(row))
    return (number if is_resolved(row) else f"{NOT_RESOLVED} ({number})") + on


def number_lines(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return one line per number: its quantity, which one it is, and its value."""
    return [
        {
            "word": word(row["quantity"]),
            "quantity": row["quantity"],
            "which": _which(row),
            "value": written_value(row),
        }
        for row in rows
    ]


def _which(row: Row) -> str:
    """Return words that say which number of its quantity a row holds.

    Example:
        >>> _which({"module": "a.0.conv", "rank": 1})
        'a.0.conv, rank 1'
    """
    parts = []
    for label in _LABELS:
        if (value := row.get(label)) is not None:
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            parts.append(text if label in _NAMES else f"{label} {text}")
    return ", ".join(parts)
