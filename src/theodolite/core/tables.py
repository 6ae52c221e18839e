"""Rows as data frames of the libraries that people have (extra ``tables``)."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from theodolite.core.errors import TheodoliteError

if TYPE_CHECKING:
    import pandas
    import polars

    from theodolite.core.rows import Row


def pandas_frame(rows: "Sequence[Row]") -> "pandas.DataFrame":
    """Return rows as a data frame of pandas, a column a label."""
    return optional("pandas").DataFrame(columns_of(rows))


def polars_frame(rows: "Sequence[Row]") -> "polars.DataFrame":
    """Return rows as a data frame of Polars; mixed columns become text or floats."""
    return optional("polars").DataFrame(columns_of(rows), strict=False)


def columns_of(rows: "Sequence[Row]") -> dict[str, list[Any]]:
    """Return columns in the order in which they are first met, None where absent.

    Example:
        >>> columns_of([{"a": 1}, {"a": 2, "b": 3}])
        {'a': [1, 2], 'b': [None, 3]}
    """
    held = list(rows)
    names = dict.fromkeys(name for row in held for name in row)
    return {name: [row.get(name) for row in held] for name in names}


def optional(name: str) -> Any:
    """Import a library of the extra, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise TheodoliteError(
            f"{name} is not installed, and this conversion needs it: "
            "pip install 'theodolite[tables]'"
        ) from error
