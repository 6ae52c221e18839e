"""Rows as named numbers, for loggers that know nothing else."""

from collections import Counter
from collections.abc import Iterable

from theodolite.core import Row

# What a row says of its number; the rest says which number it is.
_ABOUT = {
    "quantity", "value", "error", "step", "loss", "level",
    "status", "norm_mode", "method", "seed", "cpu_s", "passes",
}  # fmt: skip


def scalars(rows: Iterable[Row], namespace: str) -> dict[str, float]:
    """Return the numbers of rows of one step by name.

    Rows that share a quantity are told apart by their other labels.

    Example:
        >>> rows = [{"quantity": "top", "rank": 0, "value": 3.0},
        ...         {"quantity": "top", "rank": 1, "value": 2.0}]
        >>> scalars(rows, "theodolite")
        {'theodolite/top/rank=0': 3.0, 'theodolite/top/rank=1': 2.0}
    """
    rows = list(rows)
    many = Counter(row["quantity"] for row in rows)
    return {
        "/".join((namespace, row["quantity"], *_apart(row, many))): row["value"]
        for row in rows
        if isinstance(row["value"], int | float)
    }


def _apart(row: Row, many: Counter[str]) -> list[str]:
    if many[row["quantity"]] == 1:
        return []
    return [f"{key}={row[key]}" for key in row if key not in _ABOUT]
