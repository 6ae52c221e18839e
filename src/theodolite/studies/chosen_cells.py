"""Run some cells of a study, chosen by labels, and compare with committed rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError, Row, Rows
from theodolite.runs import Execution, RunFolder

from .study import Committed

Cell = Mapping[str, Any]
_LAST = ("value", "error", "committed")


@dataclass(frozen=True)
class ChosenCells:
    """The requested cells that are finished.

    Attributes:
        folder: Their run folder; a full run of the same config reuses them.
        execution: Counts of computed cells and of cells finished before.
        cells: Their labels.
        rows: Their rows; ``committed`` is the value of the committed row with the
            same labels, where there is one.
        apart: Largest relative difference to a committed value; None without any.
    """

    folder: RunFolder
    execution: Execution
    cells: tuple[Cell, ...]
    rows: Rows
    apart: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "folder": str(self.folder.path),
            "cells": [dict(cell) for cell in self.cells],
            "computed": self.execution.n_computed,
            "rows": list(self.rows),
            "largest_relative_difference": self.apart,
        }

    def to_text(self) -> str:
        """Return the result as text: a table, then its folder."""
        known, asked = self.execution.n_done_before, len(self.cells)
        lines = [
            *_table(self.rows),
            "",
            f"{asked} {'cell' if asked == 1 else 'cells'} ({known} known before) in "
            f"{self.folder.path}; a full run finds them there",
        ]
        if self.apart is None:
            lines.append("no committed rows were made with these settings and labels")
        else:
            n = sum("committed" in row for row in self.rows)
            lines.append(
                f"{n} of {len(self.rows)} rows have a committed value; the largest "
                f"relative difference is {self.apart:.2g}"
            )
        return "\n".join(lines)


def parse_filters(texts: Iterable[str]) -> dict[str, list[str]]:
    """Read ``LABEL=VALUE`` texts; one label may be given several values.

    Example:
        >>> parse_filters(["depth=4", "depth=6", "network=xavier"])
        {'depth': ['4', '6'], 'network': ['xavier']}
    """
    wanted: dict[str, list[str]] = {}
    for text in texts:
        label, sign, value = text.partition("=")
        if not sign or not label.strip() or not value.strip():
            raise ConfigError(
                f"--cell {text!r} is not LABEL=VALUE: pass one such as depth=4"
            )
        wanted.setdefault(label.strip(), []).append(value.strip())
    return wanted


def choose(
    cells: Sequence[Cell], wanted: Mapping[str, Sequence[str]], name: str
) -> list[Cell]:
    """Return the cells with these labels; the error lists the labels that exist.

    Args:
        cells: All cells of a study.
        wanted: Values as text by label; a cell matches with any one of each.
        name: Name of the study, for the error if nothing matches.
    """
    chosen = [
        cell
        for cell in cells
        if all(
            label in cell and any(_same(cell[label], text) for text in texts)
            for label, texts in wanted.items()
        )
    ]
    if chosen:
        return chosen
    asked = ", ".join(f"{k}={v}" for k, vs in wanted.items() for v in vs)
    raise ConfigError(f"no cell of {name} has {asked}: its cells have {_known(cells)}")


def add_committed_values(
    rows: Rows, cells: Sequence[Cell], committed: Committed | None, config: Any
) -> Rows:
    """Add to each row the value of the committed row with the same labels."""
    if committed is None:
        return rows
    kept: dict[tuple[Any, ...], Any] = {}
    for cell in cells:
        names = (*cell, *committed.labels)
        for row in committed.run.of_cell(config, cell):
            kept[_key({**row, **cell}, names)] = row.get("value")
    names_of = [(*cell, *committed.labels) for cell in cells]
    return Rows(_with_committed(row, names_of, kept) for row in rows)


def largest_difference(rows: Rows) -> float | None:
    """Return the largest relative difference between value and committed value.

    If a number is smaller than its own error, the difference is relative to that error:
    a number that is zero up to rounding agrees with zero.
    """
    pairs = [
        (row["value"], row["committed"], row.get("error"))
        for row in rows
        if "committed" in row
    ]
    if not pairs:
        return None
    return max(_relative(*pair) for pair in pairs)


def _table(rows: Rows) -> list[str]:
    """Return rows as aligned columns: quantity, labels, value, error, the rest."""
    seen = list(dict.fromkeys(key for row in rows for key in row))
    last = [key for key in _LAST if key in seen]
    columns = ["quantity", *(k for k in seen if k not in (*_LAST, "quantity")), *last]
    body = [[_text(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *body, strict=True)]
    return [
        "  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip()
        for line in [columns, *body]
    ]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _with_committed(
    row: Row, names_of: list[tuple[str, ...]], kept: Mapping[tuple[Any, ...], Any]
) -> Row:
    for names in names_of:
        if (key := _key(row, names)) in kept:
            return {**row, "committed": kept[key]}
    return row


def _key(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple((name, row.get(name)) for name in names)


def _relative(value: Any, kept: Any, error: float | None) -> float:
    numbers = [isinstance(one, int | float) for one in (value, kept)]
    if not all(numbers):
        return math.inf if any(numbers) else 0.0  # one diverged, or both did
    scale = max(abs(value), abs(kept), error or 0.0)
    return abs(value - kept) / scale if scale else 0.0


def _same(value: Any, text: str) -> bool:
    if str(value) == text:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return float(text) == value
    except ValueError:
        return False


def _known(cells: Sequence[Cell]) -> str:
    levels: dict[str, dict[str, Any]] = {}
    for cell in cells:
        for label, value in cell.items():
            levels.setdefault(label, {})[str(value)] = value
    return "; ".join(
        f"{label} {', '.join(_ordered(values))}" for label, values in levels.items()
    )


def _ordered(values: Mapping[str, Any]) -> list[str]:
    numbers = all(isinstance(v, int | float) for v in values.values())
    return sorted(values, key=lambda text: values[text]) if numbers else list(values)
