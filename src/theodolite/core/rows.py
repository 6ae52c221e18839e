"""Flat rows, the only form in which results reach disk and figures.

A row is a dict of plain JSON values with a ``quantity``, the labels of its
dimensions, a ``value`` and, for what was measured, an ``error``.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from .display import html_table
from .errors import ConfigError, TheodoliteError

if TYPE_CHECKING:
    import pandas
    import polars


def pandas_frame(rows: "Sequence[Row]") -> "pandas.DataFrame":
    """Return rows as a pandas data frame, one column per label."""
    return optional("pandas").DataFrame(columns_of(rows))


def polars_frame(rows: "Sequence[Row]") -> "polars.DataFrame":
    """Return rows as a data frame of Polars; mixed columns become text or floats."""
    return optional("polars").DataFrame(columns_of(rows), strict=False)


def columns_of(rows: "Sequence[Row]") -> dict[str, list[Any]]:
    """Return columns in order of first appearance, None where a row has no value.

    Example:
        >>> columns_of([{"a": 1}, {"a": 2, "b": 3}])
        {'a': [1, 2], 'b': [None, 3]}
    """
    held = list(rows)
    names = dict.fromkeys(name for row in held for name in row)
    return {name: [row.get(name) for row in held] for name in names}


def optional(name: str) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise TheodoliteError(
            f"{name} is not installed, and this conversion needs it: "
            "pip install 'theodolite[tables]'"
        ) from error


Row = Mapping[str, Any]
Cell = Mapping[str, Any]  # labels of an independent piece of a run

_ATOMS = frozenset({type(None), str, float, int, bool})
_Index = dict[tuple[Any, ...], list[dict[str, Any]]]
# Rows that a notebook shows.
_SHOWN = 12
_LINE = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


class Rows(Sequence[Row]):
    """An immutable table of rows with the few methods that studies need.

    Rows go in as plain JSON values and come out as copies.

    Example:
        >>> rows = Rows([{"quantity": "loss", "depth": 2, "value": 0.5},
        ...              {"quantity": "loss", "depth": 4, "value": 0.25}])
        >>> rows.where(depth=4).values()
        array([0.25])
        >>> rows.levels("depth")
        [2, 4]
    """

    __slots__ = ("_indices", "_rows")

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: tuple[dict[str, Any], ...] = tuple(
            to_json_values(dict(r)) for r in rows
        )
        # By the labels that rows were asked for by; None after the first time.
        self._indices: dict[tuple[str, ...], _Index | None] = {}

    @classmethod
    def _of(cls, rows: Iterable[dict[str, Any]]) -> "Rows":
        table = cls.__new__(cls)
        table._rows = tuple(rows)
        table._indices = {}
        return table

    @classmethod
    def of_plain(cls, rows: Iterable[dict[str, Any]]) -> "Rows":
        """Return a table of rows that are JSON values already; they are not copied."""
        return cls._of(rows)

    @classmethod
    def joined(cls, tables: "Iterable[Rows]") -> "Rows":
        """Return one table of the rows of several."""
        return cls._of(row for table in tables for row in table._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Rows._of(self._rows[index])
        return dict(self._rows[index])

    def __iter__(self) -> Iterator[Row]:
        return (dict(row) for row in self._rows)

    def __add__(self, other: Iterable[Row]) -> "Rows":
        other = other if isinstance(other, Rows) else Rows(other)
        return Rows._of((*self._rows, *other._rows))

    def __eq__(self, other: object) -> bool:
        """Compare as JSON lines: NaN equals NaN, 1 differs from 1.0."""
        if not isinstance(other, Rows) or len(self) != len(other):
            return False
        pairs = zip(self._rows, other._rows, strict=True)
        return all(a is b or _LINE.encode(a) == _LINE.encode(b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the first rows."""
        kept = columns_of(self._rows[:_SHOWN])
        left = len(self) - _SHOWN
        body = [
            [_cell(cell) for cell in row] for row in zip(*kept.values(), strict=True)
        ]
        note = f"… {left} rows more" if left > 0 else ""
        return html_table(repr(self), list(kept), body, note)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas data frame (extra ``theodolite[tables]``)."""
        return pandas_frame(self._rows)

    def to_polars(self) -> "polars.DataFrame":
        """Return a data frame of Polars (extra ``theodolite[tables]``)."""
        return polars_frame(self._rows)

    def where(self, test: Callable[[Row], bool] | None = None, **labels: Any) -> "Rows":
        """Keep the rows that carry all these labels and pass the test."""
        kept = self._with(to_json_values(labels))
        if test is not None:
            kept = [row for row in kept if test(dict(row))]
        return Rows._of(kept)

    def _with(self, labels: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Return the rows with these labels, by an index from the second time on."""
        names, wanted = tuple(labels), tuple(labels.values())
        plain = all(type(one) in _ATOMS and one == one for one in wanted)  # NaN is not
        if plain and (names in self._indices or names == ("quantity",)):
            index = self._indices.get(names)
            if index is None:
                index = self._indices[names] = self._index(names)
            return index.get(wanted, ())
        self._indices.setdefault(names, None)
        kept: Iterable[dict[str, Any]] = self._rows
        if type(labels.get("quantity")) is str:
            kept = self._with({"quantity": labels.pop("quantity")})
        for name, want in labels.items():
            kept = [row for row in kept if row.get(name) == want]
        return kept

    def _index(self, names: tuple[str, ...]) -> "_Index":
        """Return the rows by their values of some labels, in their order."""
        index: _Index = {}
        for row in self._rows:
            values = tuple(map(row.get, names))
            try:
                index.setdefault(values, []).append(row)
            except TypeError:
                continue  # a list, which is no label that an index is asked for
        return index

    def column(self, name: str) -> list[Any]:
        """Return one column, None where a row lacks it."""
        return [row.get(name) for row in self._rows]

    def values(self, name: str = "value") -> np.ndarray:
        """Return one numeric column as float64, NaN where a row lacks it."""
        column = [math.nan if v is None else v for v in self.column(name)]
        try:
            return np.array(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TheodoliteError(
                f"column {name!r} holds more than numbers: take column({name!r})"
            ) from error

    def levels(self, name: str) -> list[Any]:
        """Return the distinct values of a label, sorted, absent ones left out."""
        try:
            return sorted({v for v in self.column(name) if v is not None})
        except TypeError as error:
            raise TheodoliteError(
                f"column {name!r} holds values of several types or lists, which have "
                f"no order: take column({name!r})"
            ) from error

    def only(self, **labels: Any) -> Row:
        """Return the one row with these labels; raise if there is not exactly one."""
        rows = self.where(**labels)
        if len(rows) != 1:
            raise TheodoliteError(
                f"{len(rows)} rows carry {labels}, wanted exactly 1: "
                "name more labels, or rerun the study if rows are missing"
            )
        return rows[0]

    def value(self, **labels: Any) -> float:
        """Return the value of the one row with these labels."""
        value = self.only(**labels).get("value")
        if not isinstance(value, int | float):
            raise TheodoliteError(
                f"the row with {labels} has the value {value!r}, wanted a number: "
                "take only() for the whole row"
            )
        return float(value)


def compared_row(label: str, predicted: float, measured: Row) -> Row:
    """Return a predicted number beside a measured row, for a study's comparison.

    Example:
        >>> compared_row("gap", 1.0, {"value": 1.1, "error": 0.2})
        {'label': 'gap', 'predicted': 1.0, 'measured': 1.1, 'error': 0.2}
    """
    value, error = measured["value"], measured["error"]
    return {"label": label, "predicted": predicted, "measured": value, "error": error}


def sortable(value: object) -> tuple[int, float, str]:
    """Return a key that sorts labels of any types, numbers first."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def to_json_values(value: Any) -> Any:
    """Turn NumPy values, enums, dataclasses, tuples and sets into JSON values.

    Example:
        >>> to_json_values({"a": np.float64(1.5), "b": (1, 2)})
        {'a': 1.5, 'b': [1, 2]}
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:  # most values are rows, and most of their items plain
        return {
            str(key): item if type(item) in _ATOMS else to_json_values(item)
            for key, item in value.items()
        }
    if isinstance(value, Enum):
        return to_json_values(value.value)
    if isinstance(value, Mapping):
        return {str(key): to_json_values(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return to_json_values(value.tolist())
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json_values(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence):
        return [to_json_values(item) for item in value]
    if isinstance(value, set | frozenset):
        # Any fixed order will do; the set's own order depends on the hash seed.
        return sorted((to_json_values(item) for item in value), key=repr)
    return value


def to_strict_json(value: Any) -> Any:
    """Like :func:`to_json_values`, with NaN and infinities as None, for strict JSON."""
    value = to_json_values(value)
    if isinstance(value, dict):
        return {key: to_strict_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_strict_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_lines(rows: Iterable[Row]) -> str:
    """Write rows as JSON lines; floats come back bit for bit."""
    plain_rows = rows._rows if isinstance(rows, Rows) else map(to_json_values, rows)
    return "".join(_LINE.encode(row) + "\n" for row in plain_rows)


def from_lines(text: str) -> Rows:
    """Read rows that :func:`to_lines` wrote.

    Raises:
        ConfigError: A line is not a row.
    """
    # Not splitlines: JSON leaves U+0085, U+2028 and U+2029 in strings as they are.
    lines = enumerate(text.split("\n"), start=1)
    return Rows.of_plain(_row(line, number) for number, line in lines if line.strip())


def _row(line: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ConfigError(
            f"line {number} is {line[:40]!r}, which is no row: wanted a JSON object a "
            "line, as to_lines writes them"
        )
    return row
