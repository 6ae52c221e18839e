"""Rows of theory and measurement turned into numbers with all their errors.

Networks are the independent samples: rows of one trial are averaged first. A row's
own error is a bound, which more networks do not reduce; a best value at the edge of
the tried range (``edge`` true) has no bound at all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows import Row, Rows
from .quantity import (
    NO_ROWS,
    Known,
    Quantity,
    Sampled,
    Share,
    combined,
    known,
    sampled,
    share,
)
from .selecting import PredictedAndMeasured, Select, log10_of

EDGE = "a best value lies on the edge of what was tried"

# A function from predicted and measured rows to a number.
Read = Callable[[PredictedAndMeasured], Quantity]


@dataclass(frozen=True)
class ByNetwork:
    """Values and errors by network."""

    values: dict[Any, float]
    errors: dict[Any, float]
    note: str = ""

    @property
    def networks(self) -> list[Any]:
        """The networks, in one order."""
        return sorted(self.values, key=str)

    def mean(self, name: str) -> Sampled:
        """Return the mean over networks."""
        order = self.networks
        values, errors = ([t[k] for k in order] for t in (self.values, self.errors))
        return sampled(name, values, errors, self.note)

    def minus(self, other: "ByNetwork") -> "ByNetwork":
        """Return the differences, network by network, for networks in both."""
        both = self.values.keys() & other.values.keys()
        return ByNetwork(
            {k: self.values[k] - other.values[k] for k in both},
            {k: self.errors[k] + other.errors[k] for k in both},
            self.note or other.note or ("" if both else self._apart(other)),
        )

    def _apart(self, other: "ByNetwork") -> str:
        return "no network has both" if self.values and other.values else ""


def by_network(rows: Rows, *, log: bool = False, unit: str = "trial") -> ByNetwork:
    """Return the mean value and error of each network; logarithms are decimal."""
    groups: dict[Any, list[tuple[float, float]]] = {}
    note = ""
    for row in rows:
        groups.setdefault(row.get(unit), []).append(_pair(row, log))
        note = EDGE if row.get("edge") else note
    averages = {
        k: pairs[0] if len(pairs) == 1 else np.mean(np.array(pairs), axis=0)
        for k, pairs in groups.items()
    }
    return ByNetwork(
        {k: float(pair[0]) for k, pair in averages.items()},
        {k: float(pair[1]) for k, pair in averages.items()},
        note,
    )


def _pair(row: Row, log: bool) -> tuple[float, float]:
    """Return a row's value and the bound on its error, linear or logarithmic."""
    value, error = row.get("value"), row.get("error", 0.0)
    value = math.nan if value is None else float(value)
    # A row without the column is exact; an empty error means that it is unknown.
    if error is None or math.isnan(error) or row.get("edge"):
        error = math.inf
    return log10_of(value, abs(float(error))) if log else (value, abs(float(error)))


def mean(rows: Select, *, log: bool = False, name: str = "") -> Read:
    """Read the mean over networks."""

    def read(both: PredictedAndMeasured) -> Quantity:
        return by_network(rows(both), log=log).mean(name or _axis(str(rows), log))

    return read


def difference(
    first: Select,
    second: Select,
    *,
    log: bool = False,
    paired: bool = True,
    name: str = "",
) -> Read:
    """Read the mean of the first minus the second, paired by network or not."""

    def read(both: PredictedAndMeasured) -> Quantity:
        parts = [by_network(rows(both), log=log) for rows in (first, second)]
        title = name or _axis(f"{first} less {second}", log)
        if paired:
            return parts[0].minus(parts[1]).mean(title)
        means = [
            part.mean(str(s)) for part, s in zip(parts, (first, second), strict=True)
        ]
        return combined(title, means, (1.0, -1.0))

    return read


def slope(
    rows: Select,
    over: str,
    *,
    log_x: bool = True,
    log_y: bool = True,
    points: int = 3,
    name: str = "",
) -> Read:
    """Read the slope of the means over a label; on two logarithms, an exponent.

    Each network that has all points gives one slope, so that rows of one network may
    depend on one another; other networks do not count. Points count as independent
    only if fewer than two networks have all of them, as when each point has different
    networks.

    Args:
        rows: The values on the y axis.
        over: The label on the x axis.
        log_x: Take the logarithm of the label.
        log_y: Take the logarithm of the values.
        points: Fewest different values of the label.
        name: What it is called.
    """

    def read(both: PredictedAndMeasured) -> Quantity:
        table = rows(both)
        levels = table.levels(over)
        title = name or f"{'exponent' if log_x and log_y else 'slope'} of {rows}"
        if len(levels) < points:
            why = f"{len(levels)} values of {over} do not fix a slope"
            return sampled(title, [], note=why if levels else NO_ROWS)
        lever = _lever(levels, log_x)
        groups = [by_network(table.where(**{over: x}), log=log_y) for x in levels]
        return _slope_of(title, groups, lever)

    return read


def slope_difference(
    first: Select,
    second: Select,
    over: str,
    *,
    log_x: bool = True,
    log_y: bool = True,
    name: str = "",
) -> Read:
    """Return the difference of two slopes, network by network.

    Only values of the label that occur in both selections count.
    """

    def read(both: PredictedAndMeasured) -> Quantity:
        tables = [rows(both) for rows in (first, second)]
        title = name or f"exponent of {first} less that of {second}"
        common = sorted(set.intersection(*(set(t.levels(over)) for t in tables)))
        if len(common) < 3:
            why = f"{len(common)} common values of {over} do not fix a slope"
            return sampled(title, [], note=why if all(map(len, tables)) else NO_ROWS)
        slopes = [
            slope_by_network(
                table.where(lambda row: row[over] in common),
                over,
                log_x=log_x,
                log_y=log_y,
            )
            for table in tables
        ]
        return slopes[0].minus(slopes[1]).mean(title)

    return read


def slope_by_network(
    rows: Rows, over: str, *, log_x: bool = True, log_y: bool = True
) -> ByNetwork:
    """Return the slope of each network that has all points."""
    levels = rows.levels(over)
    groups = [by_network(rows.where(**{over: x}), log=log_y) for x in levels]
    return _own_slopes(groups, _lever(levels, log_x))


def _lever(levels: list[Any], log_x: bool) -> np.ndarray:
    x = np.array(levels, dtype=np.float64)
    x = np.log10(x) if log_x else x
    away = x - x.mean()
    return away / (away @ away)


def _own_slopes(groups: list[ByNetwork], lever: np.ndarray) -> ByNetwork:
    common = set.intersection(*(set(group.values) for group in groups))
    # An infinite error leaves the slope open even if its point has no leverage.
    size = np.maximum(np.abs(lever), np.finfo(np.float64).tiny)
    return ByNetwork(
        {k: float(lever @ [group.values[k] for group in groups]) for k in common},
        {k: float(size @ [group.errors[k] for group in groups]) for k in common},
        next((group.note for group in groups if group.note), ""),
    )


def _slope_of(name: str, groups: list[ByNetwork], lever: np.ndarray) -> Sampled:
    own = _own_slopes(groups, lever)
    if len(own.values) > 1 or all(len(g.values) == len(own.values) for g in groups):
        return own.mean(name)
    return combined(name, [group.mean(name) for group in groups], list(lever))


def largest(rows: Select, *, name: str = "") -> Read:
    """Read the largest magnitude of all rows, with a bound that covers each."""
    return lambda both: _extreme(rows(both), name or f"largest {rows}", most=True)


def smallest(rows: Select, *, name: str = "") -> Read:
    """Read the least magnitude of all rows, with a bound that covers each."""
    return lambda both: _extreme(rows(both), name or f"least {rows}", most=False)


def _extreme(rows: Rows, name: str, *, most: bool) -> Known:
    if not len(rows):
        return known(name, math.nan, note=NO_ROWS)
    pairs = np.abs(np.array([_pair(row, False) for row in rows]))
    values, errors = pairs[:, 0], pairs[:, 1]
    about = these_networks(rows)
    if most:
        value = float(values.max())
        return known(name, value, float((values + errors).max()) - value, about)
    value = float(values.min())
    return known(name, value, value - float((values - errors).min()), about)


def these_networks(rows: Rows) -> str:
    """Return the note that an extreme is a statement about the networks at hand."""
    networks = len(rows.levels("trial"))
    return f"of these {networks} networks" if networks > 1 else ""


def span(rows: Select, *, name: str = "") -> Read:
    """Read the largest minus the least value, relative to the largest magnitude."""

    def read(both: PredictedAndMeasured) -> Quantity:
        title = name or f"relative change of {rows}"
        table = rows(both)
        if not len(table):
            return known(title, math.nan, note=NO_ROWS)
        pairs = np.array([_pair(row, False) for row in table])
        scale = float(np.abs(pairs[:, 0]).max()) or 1.0
        bound = 2 * float(pairs[:, 1].max()) / scale
        return known(title, float(np.ptp(pairs[:, 0])) / scale, bound)

    return read


def largest_distance(
    first: Select,
    second: Select,
    by: tuple[str, ...],
    *,
    relative: bool = True,
    name: str = "",
) -> Read:
    """Read the largest distance between rows of the two with the same labels.

    Args:
        first: One side, usually the predicted one.
        second: The other; each of its rows must have a partner.
        by: Labels that partners share.
        relative: Divide distances by the first.
        name: What it is called.
    """

    def read(both: PredictedAndMeasured) -> Quantity:
        foretold = first.side != second.side and str(first) == str(second)
        other = "its prediction" if foretold else first
        title = name or f"largest distance of {second} from {other}"
        ours = {tuple(row.get(k) for k in by): row for row in first(both)}
        gaps, bounds = [], []
        for row in second(both):
            partner = ours.get(tuple(row.get(k) for k in by))
            if partner is None:
                return known(
                    title, math.nan, note=f"{second} has a row without partner"
                )
            (a, da), (b, db) = _pair(partner, False), _pair(row, False)
            scale = abs(a) if relative else 1.0
            gaps.append(abs(a - b) / scale if scale else math.nan)
            bounds.append((da + db) / scale if scale else math.inf)
        if not gaps:
            return known(title, math.nan, note=NO_ROWS)
        value = float(np.max(gaps))
        return known(title, value, float(np.max(np.add(gaps, bounds))) - value)

    return read


def counted(
    rows: Select, test: Callable[[Row], bool], *, name: str = "", unit: str = "trial"
) -> Read:
    """Read the share of networks whose rows all pass a test."""

    def read(both: PredictedAndMeasured) -> Share:
        passed: dict[Any, bool] = {}
        for row in rows(both):
            key = row.get(unit)
            passed[key] = passed.get(key, True) and test(row)
        return share(name or f"share of {rows}", sum(passed.values()), len(passed))

    return read


def _axis(name: str, log: bool) -> str:
    return f"log10 {name}" if log else name


def highest(rows: Select, *, less: Select | None = None, name: str = "") -> Read:
    """Read the highest value of all rows, with a bound that covers each.

    Args:
        rows: The rows to read.
        less: One row whose value is subtracted.
        name: Name of the number.
    """
    return lambda both: _furthest(rows, less, both, name or f"highest {rows}", 1.0)


def lowest(rows: Select, *, less: Select | None = None, name: str = "") -> Read:
    """Read the lowest value of all rows, with a bound; arguments as of ``highest``."""
    return lambda both: _furthest(rows, less, both, name or f"lowest {rows}", -1.0)


def _furthest(
    rows: Select,
    less: Select | None,
    both: PredictedAndMeasured,
    name: str,
    sign: float,
) -> Quantity:
    table = rows(both)
    base, lost = 0.0, 0.0
    if less is not None:
        name = f"{name} less {less}"
        (row,) = less(both)
        base, lost = float(row["value"]), abs(float(row["error"]))
    if not len(table):
        return known(name, math.nan, note=NO_ROWS)
    values, errors = sign * (table.values() - base), np.abs(table.values("error"))
    value = float(values.max())
    bound = float((values + errors).max()) + lost - value
    bound = bound if math.isfinite(bound) else math.inf
    return known(name, sign * value, bound, these_networks(table))
