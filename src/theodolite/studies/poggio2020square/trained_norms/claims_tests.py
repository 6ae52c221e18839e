"""Tests of both families, condition by condition."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations

from theodolite.core import (
    Region,
    Select,
    Test,
    above,
    alike,
    difference,
    each,
    equivalent,
    every,
    inside,
    mean,
    measured,
    ordered,
)
from theodolite.studies.poggio2020square.trained_norms.config import CONDITIONS

Run = tuple[str, float]
# The captions' small and large starts of each condition.
SMALL: tuple[Run, ...] = (("bn_wd", 0.1), ("bn", 0.1), ("plain", 5.0))
LARGE: tuple[Run, ...] = (("bn_wd", 5.0), ("bn", 5.0), ("plain", 30.0))
# All that the figures show, and of them what has no decay.
SHOWN: tuple[Run, ...] = tuple(
    (name, start)
    for name in ("bn_wd", "bn", "plain")
    for start in CONDITIONS[name].starts
)
NO_DECAY = tuple(run for run in SHOWN if run[0] != "bn_wd")


def of(quantity: str, run: Run, family: str) -> Select:
    """Select rows of one condition and start."""
    return measured(quantity, family=family, condition=run[0], start=run[1])


def in_families(quantity: str, pieces: Sequence[Callable[[str], Test]]) -> Test:
    """Judge pieces in every family that was trained."""
    return each(
        "family",
        measured(quantity),
        lambda family: every(*(piece(family) for piece in pieces)),
    )


def runs_inside(quantity: str, which: Sequence[Run], region: Region) -> Test:
    """Judge whether means of conditions lie in a region."""
    return in_families(
        quantity,
        [
            lambda family, run=run: inside(mean(of(quantity, run, family)), region)
            for run in which
        ],
    )


def less(
    low: tuple[str, Sequence[Run]], high: tuple[str, Sequence[Run]], *, log: bool
) -> Test:
    """Judge whether one quantity is less than another, condition by condition."""
    pairs = list(zip(low[1], high[1], strict=True))
    return in_families(
        low[0],
        [
            lambda family, a=a, b=b: ordered(
                of(low[0], a, family), of(high[0], b, family), log=log
            )
            for a, b in pairs
        ],
    )


def forgets(condition: str, margin: float, why: str) -> Test:
    """Judge whether norms and outputs end alike from all starts of a condition."""
    starts = combinations(CONDITIONS[condition].starts, 2)
    region = alike(math.log10(margin), why)
    pieces = [
        lambda family, a=a, b=b, q=q: equivalent(
            of(q, (condition, a), family),
            of(q, (condition, b), family),
            margin=region,
            log=True,
        )
        for a, b in starts
        for q in ("rho_end", "mean_abs_f")
    ]
    return in_families("rho_end", pieces)


def remembers(conditions: Sequence[str], factor: float, why: str) -> Test:
    """Judge whether norms from the largest start end above those from the least."""
    ends = [(c, CONDITIONS[c].starts[0], CONDITIONS[c].starts[-1]) for c in conditions]
    region = above(math.log10(factor), source="ours", why=why)
    pieces = [
        lambda family, c=c, a=a, b=b: inside(
            difference(of("rho_end", (c, b), family), of("rho_end", (c, a), family),
                       log=True),
            region,
        )
        for c, a, b in ends
    ]  # fmt: skip
    return in_families("rho_end", pieces)
