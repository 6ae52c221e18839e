"""A cell: the unit of work, named by flat labels, kept in one file.

The file is JSON lines: a head with labels, cost and row count, the rows, and a
tail with the checksum of all lines before it. A file without a correct tail (cut off
by a copy, a full disk or an editor) counts as absent.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError, Cost, Row, Rows, to_json_values, to_lines

from .spec import canonical, short_hash

Cell = Mapping[str, Any]

_FORMAT = 1


@dataclass(frozen=True)
class SavedCell:
    """A finished cell as read from its file; rows carry the cell's labels."""

    cell: dict[str, Any]
    cost: Cost
    rows: Rows


def labels(cell: Cell) -> dict[str, Any]:
    """Return the cell's labels as plain values; raise if they are nested."""
    flat = json.loads(canonical(cell, "cell"))
    for name, value in flat.items():
        if isinstance(value, list | dict):
            raise ConfigError(
                f"label {name!r} of a cell is {value!r}: a label is one number or text"
            )
    return flat


def cell_key(cell: Cell) -> str:
    """Return the text that identifies a cell."""
    return canonical(labels(cell), "cell")


def cell_name(cell: Cell) -> str:
    """Return a file name for a cell: readable labels, then a hash.

    Example:
        >>> cell_name({"kind": "xavier", "depth": 16})
        'depth=16,kind=xavier-6067a3b43c62'
    """
    text = ",".join(f"{k}={v}" for k, v in sorted(labels(cell).items()))
    slug = re.sub(r"[^A-Za-z0-9=,._+-]", "_", text)[:80].lstrip(".")
    return f"{slug}-{short_hash(cell_key(cell))}"


def describe(cell: Cell) -> str:
    """Return a cell as readable text.

    Example:
        >>> describe({"kind": "xavier", "depth": 16})
        'kind=xavier, depth=16'
    """
    return ", ".join(f"{k}={v}" for k, v in cell.items()) or "the only cell"


def cell_order(cell: Cell) -> tuple[Any, ...]:
    """Return a sort key: by label name, numbers as numbers, text as text."""
    return tuple(
        (name, 0, value, "")
        if isinstance(value, int | float)
        else (name, 1, 0, canonical(value))
        for name, value in sorted(labels(cell).items())
    )


def unique(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells in order, each once."""
    return list({cell_key(cell): cell for cell in cells}.values())


def encode(cell: Cell, rows: Iterable[Row], cost: Cost) -> bytes:
    """Return the content of a cell's file."""
    mine = labels(cell)
    rows = [_checked(mine, row) for row in rows]
    head = {
        "format": _FORMAT,
        "cell": mine,
        "cost": cost.to_dict(),
        "n_rows": len(rows),
    }
    body = to_lines([head, *rows]).encode()
    tail = {"end": len(rows), "sha256": hashlib.sha256(body).hexdigest()}
    return body + to_lines([tail]).encode()


def decode(content: bytes) -> SavedCell | None:
    """Return the cell of a file; None if it is damaged or of another kind."""
    body, _, tail = content.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n"
    try:
        end = json.loads(tail)
        if end["sha256"] != hashlib.sha256(body).hexdigest():
            return None
        # JSON writes line feeds in text as escapes, so each one here ends a line.
        head, *rows = json.loads(b"[%s]" % body[:-1].replace(b"\n", b","))
        if head["format"] != _FORMAT or not len(rows) == end["end"] == head["n_rows"]:
            return None
        mine = head["cell"]
        merged = Rows.of_plain({**mine, **row} for row in rows)
        return SavedCell(mine, Cost(**head["cost"]), merged)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _checked(mine: Mapping[str, Any], row: Row) -> Row:
    for name in mine.keys() & row.keys():
        if to_json_values(row[name]) != mine[name]:
            raise ConfigError(
                f"a row says {name}={row[name]!r} but its cell says "
                f"{name}={mine[name]!r}: give the row's label another name"
            )
    return row
