"""Rows of many networks to rows of points: what tables and figures show."""

import math
from collections.abc import Iterable

import numpy as np

from theodolite.core.rows import Row, Rows
from theodolite.core.statistics import estimate


def points(rows: Rows, by: Iterable[str], *, log: bool = False) -> Rows:
    """Return a row for each combination of labels, with the mean over its rows.

    Rows without a finite value are left out and counted as ``lost``. Each row has
    ``value`` (the mean), ``error`` (its standard error), ``spread`` (the standard
    deviation over networks, 0 for one), ``n``, ``lost``, and ``open``: whether some
    row's own error is not known or not finite.

    Args:
        rows: Rows of one quantity.
        by: Labels that make a point.
        log: Average decimal logarithms.

    Example:
        >>> table = Rows({"depth": 2, "trial": t, "value": 10.0**t} for t in (0, 2))
        >>> points(table, ["depth"], log=True).value(depth=2)
        1.0
    """
    labels = tuple(by)
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(label) for label in labels), []).append(row)
    found = (
        {**dict(zip(labels, key, strict=True)), **_point(group, log)}
        for key, group in groups.items()
    )
    return Rows(sorted(found, key=lambda row: [_sortable(row[x]) for x in labels]))


def _point(rows: list[Row], log: bool) -> Row:
    values = np.array(
        [math.nan if row.get("value") is None else row["value"] for row in rows], float
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log10(values) if log else values
    finite = values[np.isfinite(values)]
    errors = [row.get("error", 0.0) for row in rows]
    found = estimate(finite if len(finite) else [math.nan])
    return {
        "quantity": rows[0].get("quantity"),
        "value": found.mean,
        "error": found.stderr,
        "spread": found.std if found.n > 1 else 0.0,
        "n": len(finite),
        "lost": len(values) - len(finite),
        "open": any(e is None or not math.isfinite(e) for e in errors),
    }


def _sortable(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value)
