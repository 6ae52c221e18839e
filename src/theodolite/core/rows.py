"""Flat rows: all that reaches disk and figures.

A row is a dict of plain JSON values with a ``quantity``, the labels of its
dimensions, a ``value`` and, for what was measured, an ``error``.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from theodolite.core.errors import TheodoliteError

Row = Mapping[str, Any]


class Rows(Sequence[Row]):
    """An immutable table of rows with just the verbs that studies need.

    Example:
        >>> rows = Rows([{"quantity": "loss", "depth": 2, "value": 0.5},
        ...              {"quantity": "loss", "depth": 4, "value": 0.25}])
        >>> rows.where(depth=4).values()
        array([0.25])
        >>> rows.levels("depth")
        [2, 4]
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: tuple[Row, ...] = tuple(dict(row) for row in rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        found = self._rows[index]
        return Rows(found) if isinstance(index, slice) else found

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __add__(self, other: Iterable[Row]) -> "Rows":
        return Rows([*self._rows, *other])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and to_lines(self) == to_lines(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows)"

    def where(self, test: Callable[[Row], bool] | None = None, **labels: Any) -> "Rows":
        """Keep the rows that carry all these labels and pass the test."""
        return Rows(
            row
            for row in self._rows
            if all(row.get(key) == want for key, want in labels.items())
            and (test is None or test(row))
        )

    def column(self, name: str) -> list[Any]:
        """Return one column, None where a row lacks it."""
        return [row.get(name) for row in self._rows]

    def values(self, name: str = "value") -> np.ndarray:
        """Return one numeric column as float64, NaN where a row lacks it."""
        return np.array(
            [math.nan if (v := row.get(name)) is None else v for row in self._rows],
            dtype=np.float64,
        )

    def levels(self, name: str) -> list[Any]:
        """Return the distinct values of a label, sorted, absent ones left out."""
        return sorted({row[name] for row in self._rows if row.get(name) is not None})

    def only(self, **labels: Any) -> Row:
        """Return the one row with these labels, or refuse."""
        found = self.where(**labels)
        if len(found) != 1:
            raise TheodoliteError(
                f"{len(found)} rows carry {labels}, wanted exactly 1: "
                "name more labels, or rerun the study if rows are missing"
            )
        return found[0]

    def value(self, **labels: Any) -> float:
        """Return the value of the one row with these labels."""
        return float(self.only(**labels)["value"])


def plain(value: Any) -> Any:
    """Turn NumPy scalars, arrays, enums and tuples into plain JSON values.

    Example:
        >>> plain({"a": np.float64(1.5), "b": (1, 2)})
        {'a': 1.5, 'b': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in value]
    return value


def strict(value: Any) -> Any:
    """Like :func:`plain`, with NaN and infinities as None, for strict JSON."""
    value = plain(value)
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_lines(rows: Iterable[Row]) -> str:
    """Write rows as JSON lines; floats come back bit for bit."""
    return "".join(
        json.dumps(plain(row), ensure_ascii=False, sort_keys=True) + "\n"
        for row in rows
    )


def from_lines(text: str) -> Rows:
    """Read rows that :func:`to_lines` wrote."""
    return Rows(json.loads(line) for line in text.splitlines() if line.strip())
