"""Rows of surveys as lines of a table."""

from collections.abc import Iterable, Sequence
from typing import Any

from theodolite.core import Row
from theodolite.pages import short_number

from ..records.outcomes import on_samples, samples_of
from .words import word

# Labels that say which number a row is, in the order in which a table shows them.
_LABELS = ("block", "module", "parameter", "optimizer", "rank", "share", "length")
_LABELS += ("node", "sample")
_NAMES = ("block", "module", "optimizer")


def value_of(row: Row) -> float | None:
    """Return a row's number, None if it has none."""
    value = row.get("value")
    return float(value) if isinstance(value, int | float) else None


def error_of(row: Row) -> float | None:
    """Return a row's error, None if it has none."""
    error = row.get("error")
    return float(error) if isinstance(error, int | float) else None


def written_value(row: Row) -> str:
    """Write a row's number with its error, and its samples if they are not all."""
    value, on = value_of(row), on_samples(samples_of(row))
    if value is None:
        return str(row.get("nonfinite", "—")) + on
    return short_number(value, error_of(row)) + on


def which(row: Row, block: str | None = None) -> str:
    """Return words that say which number of its quantity a row holds.

    Args:
        row: The row, or its labels.
        block: The block of the table, which is not named again.

    Example:
        >>> which({"block": "a.0", "module": "a.0.conv", "rank": 1}, block="a.0")
        'conv, rank 1'
    """
    parts = []
    for label in _LABELS:
        value = row.get(label)
        if value is None or (label == "block" and block is not None):
            continue
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        text = text.removeprefix(f"{block}.") if label == "module" else text
        parts.append(text if label in _NAMES else f"{label} {text}")
    return ", ".join(parts)


def number_lines(
    rows: Sequence[Iterable[Row]], blocks: Sequence[str | None] | None = None
) -> list[dict[str, Any]]:
    """Return one line per number, with one value per side.

    Args:
        rows: The rows of each side.
        blocks: The block of each side, if the table describes one block.
    """
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for place, mine in enumerate(rows):
        for row in mine:
            quantity = row["quantity"]
            of = which(row, blocks[place] if blocks else None)
            empty = {"word": word(quantity), "quantity": quantity, "which": of}
            values = ["—"] * len(rows)
            line = lines.setdefault((quantity, of), {**empty, "values": values})
            line["values"][place] = written_value(row)
    return list(lines.values())
