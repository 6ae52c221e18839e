"""Rows of long runs that travel with the package, with the config that made them.

A file of ``committed/`` is JSON: the config, what it was made with, and a table of
columns and lines. Studies show and judge these rows below the paper scale, under
``kind="committed"``, and run the same cells again with ``--scale paper``.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from theodolite.core import Row, Rows, RunError, plain

KIND = "committed"
# Settings that leave the rows of a single cell as they are.
_ELSEWHERE = {"device", "committed", "depths", "networks", "shortcuts"}


def committed_rows(name: str) -> Rows:
    """Return the rows of a committed run; none where there is no such run.

    Every row carries ``kind="committed"`` and ``scale="paper"``.

    Example:
        >>> committed_rows("no-such-run")
        Rows(0 rows)
    """
    return unpack(_saved(name))


def committed_config(name: str) -> dict[str, Any]:
    """Return the config of a committed run; empty where there is no such run."""
    return dict(_saved(name).get("config", {}))


def committed_digest(name: str) -> str:
    """Return a short hash of a committed file, so that configs change with it."""
    text = _text(name)
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else ""


def committed_cell(name: str, config: Any, cell: Mapping[str, Any]) -> Rows:
    """Return the committed rows of one cell, if this very config made them.

    Where it ran and which other cells there were makes no difference.
    """
    ours, theirs = plain(config), committed_config(name)
    wanted = {key: value for key, value in cell.items() if key != "kind"}
    if not theirs or cell.get("kind") == KIND:
        return Rows()
    if any(ours.get(k) != v for k, v in theirs.items() if k not in _ELSEWHERE):
        return Rows()
    return committed_rows(name).where(**wanted)


def pack(
    rows: Iterable[Row],
    *,
    config: Mapping[str, Any],
    made: Mapping[str, Any],
    digits: int = 7,
) -> str:
    """Return the content of a committed file.

    Args:
        rows: What to keep; values are rounded to ``digits`` significant digits.
        config: The config that made them.
        made: Device, versions, seconds and whatever else tells where from.
        digits: Significant digits kept.

    Example:
        >>> text = pack([{"quantity": "loss", "value": 1 / 3}], config={}, made={})
        >>> json.loads(text)["lines"]
        [['loss', 0.3333333]]
    """
    table = [plain(dict(row)) for row in rows]
    columns = list(dict.fromkeys(key for row in table for key in row))
    lines = [
        json.dumps([_short(row.get(c), digits) for c in columns], ensure_ascii=False)
        for row in table
    ]
    head = json.dumps(
        {"config": plain(config), "made": plain(made), "columns": columns},
        indent=1,
        ensure_ascii=False,
    )
    body = ",\n  ".join(lines)
    return f'{head[:-2]},\n "lines": [\n  {body}\n ]\n}}\n'


def unpack(saved: Mapping[str, Any]) -> Rows:
    """Return the rows of a committed file's content; empty cells are left out."""
    columns = saved.get("columns", [])
    return Rows(
        {
            "kind": KIND,
            "scale": "paper",
            **{
                key: value
                for key, value in zip(columns, line, strict=True)
                if value is not None
            },
        }
        for line in saved.get("lines", [])
    )


def _short(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


@cache
def _text(name: str) -> str:
    folder = resources.files(__package__ or "") / "committed"
    file = folder / f"{name}.json"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


@cache
def _saved(name: str) -> dict[str, Any]:
    text = _text(name)
    try:
        return json.loads(text) if text else {}
    except ValueError as error:
        raise RunError(
            f"committed/{name}.json cannot be read ({error}): it comes with the "
            "package; install theodolite again"
        ) from error
