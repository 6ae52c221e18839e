"""Tests of both families, condition by condition.

Runs that diverged or lost all their outputs have no numbers at the end: a start from
which fewer than two runs trained is left out, and the largest start is the largest of
those that are left.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations

from theodolite.core import (
    Judgement,
    Read,
    Region,
    Roads,
    Rows,
    Select,
    Test,
    above,
    alike,
    all_of,
    below,
    difference,
    equivalent,
    inside,
    largest,
    mean,
    measured,
    nothing,
    ordered,
)

# What the figures show, and of them what has no decay.
SHOWN = ("bn_wd", "bn", "plain")
NO_DECAY = ("bn", "plain")
Starts = dict[str, list[float]]


def of(quantity: str, family: str, condition: str, start: float) -> Select:
    """Select rows of one condition and start."""
    return measured(quantity, family=family, condition=condition, start=start)


def in_families(make: Callable[[str, Starts], Sequence[Test]]) -> Test:
    """Judge pieces in every family, made for the starts that trained."""

    def test(roads: Roads) -> Judgement:
        alive = roads.measured.where(quantity="alive")
        pieces = [
            piece(roads)
            for family in alive.levels("family")
            for piece in make(family, _trained(alive.where(family=family)))
        ]
        return all_of(pieces) if pieces else nothing("no network trained")

    return test


def _trained(alive: Rows) -> Starts:
    rows = [row for row in alive if row["value"]]
    found: dict[str, dict[float, int]] = {}
    for row in rows:
        counts = found.setdefault(row["condition"], {})
        counts[row["start"]] = counts.get(row["start"], 0) + 1
    return {
        name: sorted(start for start, n in counts.items() if n > 1)
        for name, counts in found.items()
    }


def each_start(
    conditions: Sequence[str],
    quantity: str,
    region: Region,
    *,
    read: Callable[[Select], Read] = mean,
    smallest_only: bool = False,
) -> Test:
    """Judge whether a number of each start, or of the smallest, is in a region."""

    def make(family: str, starts: Starts) -> list[Test]:
        kept = {c: starts.get(c, []) for c in conditions}
        return [
            inside(read(of(quantity, family, condition, start)), region)
            for condition, found in kept.items()
            for start in (found[:1] if smallest_only else found)
        ]

    return in_families(make)


def less_from_largest(low: str, high: str, *, log: bool) -> Test:
    """Judge whether one number is less than another from the largest starts."""

    def make(family: str, starts: Starts) -> list[Test]:
        return [
            ordered(
                of(low, family, condition, starts[condition][-1]),
                of(high, family, condition, starts[condition][-1]),
                log=log,
            )
            for condition in SHOWN
            if starts.get(condition)
        ]

    return in_families(make)


def narrows(low: str, high: str) -> Test:
    """Judge whether one number is less than another from every start."""

    def make(family: str, starts: Starts) -> list[Test]:
        return [
            ordered(
                of(low, family, condition, start),
                of(high, family, condition, start),
                log=True,
            )
            for condition in SHOWN
            for start in starts.get(condition, [])
        ]

    return in_families(make)


def forgets(condition: str, margin: float, why: str) -> Test:
    """Judge whether norms and outputs end alike from all starts of a condition."""
    region = alike(math.log10(margin), why)

    def make(family: str, starts: Starts) -> list[Test]:
        return [
            equivalent(
                of(quantity, family, condition, a),
                of(quantity, family, condition, b),
                margin=region,
                log=True,
            )
            for a, b in combinations(starts.get(condition, []), 2)
            for quantity in ("rho_end", "mean_abs_f")
        ]

    return in_families(make)


def larger_from_larger(
    quantity: str, conditions: Sequence[str], region: Region, *, log: bool
) -> Test:
    """Judge a number from the largest start less that from the smallest."""

    def make(family: str, starts: Starts) -> list[Test]:
        return [
            inside(
                difference(
                    of(quantity, family, condition, starts[condition][-1]),
                    of(quantity, family, condition, starts[condition][0]),
                    log=log,
                ),
                region,
            )
            for condition in conditions
            if len(starts.get(condition, [])) > 1
        ]

    return in_families(make)


def wide_diverge(roads: Roads) -> Judgement:
    """Judge whether nothing trains that theory calls unstable at its start."""
    pieces = [
        inside(
            largest(
                measured("alive", family=row["family"], condition=row["condition"])
            ),
            below(0.5, source="ours", why="1 for a run that trained, else 0"),
        )(roads)
        for row in roads.predicted.where(quantity="instability")
        if row["value"] > 1
    ]
    if not pieces:
        return nothing("no network is wide enough to be unstable at its rate")
    return all_of(pieces)


def factor(value: float, why: str) -> Region:
    """Return the region of decimal logarithms above that of a factor."""
    return above(math.log10(value), source="ours", why=why)
