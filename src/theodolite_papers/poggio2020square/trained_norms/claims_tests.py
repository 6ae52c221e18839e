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
    PredictedAndMeasured,
    Read,
    Region,
    Rows,
    Select,
    Test,
    above,
    all_of,
    below,
    difference,
    equivalent,
    inside,
    largest,
    mean,
    measured,
    ordered,
    our_margin,
    undecided,
)

# What the figures show, and of them what has no decay.
SHOWN = ("bn_wd", "bn", "plain")
NO_DECAY = ("bn", "plain")
Starts = dict[str, list[float]]


def of(quantity: str, family: str, condition: str, start: float) -> Select:
    """Select rows of one condition and start."""
    return measured(quantity, family=family, condition=condition, start=start)


def in_families(
    conditions: Sequence[str], make: Callable[[str, str, list[float]], Sequence[Test]]
) -> Test:
    """Judge pieces of each condition in every family, made for starts that trained.

    A condition of which no family has a piece leaves the whole open.
    """

    def test(both: PredictedAndMeasured) -> Judgement:
        alive = both.measured.where(quantity="alive")
        starts = {
            family: _trained(alive.where(family=family))
            for family in alive.levels("family")
        }
        judged = []
        for condition in conditions:
            pieces = [
                piece(both)
                for family, trained in starts.items()
                for piece in make(family, condition, trained.get(condition, []))
            ]
            reason = f"too few networks of condition {condition} trained"
            judged += pieces or [undecided(reason)]
        return all_of(judged)

    return test


def _trained(alive: Rows) -> Starts:
    rows = [row for row in alive if row["value"]]
    by_condition: dict[str, dict[float, int]] = {}
    for row in rows:
        counts = by_condition.setdefault(row["condition"], {})
        counts[row["start"]] = counts.get(row["start"], 0) + 1
    return {
        name: sorted(start for start, n in counts.items() if n > 1)
        for name, counts in by_condition.items()
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

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        return [
            inside(read(of(quantity, family, condition, start)), region)
            for start in (starts[:1] if smallest_only else starts)
        ]

    return in_families(conditions, make)


def less(low: str, high: str, *, largest_only: bool = False) -> Test:
    """Judge whether one number is less than another from all or the largest starts."""

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        kinds = [(family, condition, start) for start in starts]
        return [
            ordered(of(low, *kind), of(high, *kind), log=True)
            for kind in (kinds[-1:] if largest_only else kinds)
        ]

    return in_families(SHOWN, make)


def forgets(condition: str, margin: float, why: str) -> Test:
    """Judge whether norms and outputs end alike from all starts of a condition."""
    alike = {"margin": our_margin(math.log10(margin), why), "log": True}

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        return [
            equivalent(*(of(quantity, family, condition, x) for x in pair), **alike)
            for pair in combinations(starts, 2)
            for quantity in ("rho_end", "mean_abs_f")
        ]

    return in_families((condition,), make)


def larger_from_larger(
    quantity: str, conditions: Sequence[str], region: Region, *, log: bool
) -> Test:
    """Judge a number from the largest start less that from the smallest."""

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        if len(starts) < 2:
            return []
        both = (of(quantity, family, condition, starts[k]) for k in (-1, 0))
        return [inside(difference(*both, log=log), region)]

    return in_families(conditions, make)


def wide_diverge(both: PredictedAndMeasured) -> Judgement:
    """Judge whether no run trains that theory predicts to be unstable at its start."""
    pieces = [
        inside(
            largest(
                measured("alive", family=row["family"], condition=row["condition"])
            ),
            below(0.5, source="ours", why="1 for a run that trained, else 0"),
        )(both)
        for row in both.predicted.where(quantity="instability")
        if row["value"] > 1
    ]
    if not pieces:
        return undecided("no network is wide enough to be unstable at its rate")
    return all_of(pieces)


def factor(value: float, why: str) -> Region:
    """Return the region above log10 of a factor."""
    return above(math.log10(value), source="ours", why=why)
