"""Numbers at common levels of the loss, and how they are judged over networks."""

import numpy as np

from theodolite.core import (
    Estimate,
    Number,
    Rows,
    Verdict,
    estimate,
    holds_if,
    undecided,
)
from theodolite.studies.li2016demystifying.judging import ALONE

# Confidence, two-sided, beyond which a mean over networks counts; with so few networks
# Student's distribution is needed.
LEVEL = 0.95


def levels(measured: Rows, quantity: str, kind: str, depth: int) -> dict[float, Rows]:
    """Return a quantity's rows at each level that half of a kind's runs passed.

    Runs that start below a level, or end above it, have no row there.
    """
    rows = measured.where(task="levels", quantity=quantity, kind=kind, depth=depth)
    rows = rows.where(lambda row: row.get("fraction") is not None)
    runs = len(measured.where(task="levels", kind=kind, depth=depth).levels("trial"))
    found = {f: rows.where(fraction=f) for f in rows.levels("fraction")[::-1]}
    return {f: here for f, here in found.items() if 2 * len(here) >= runs}


def depths_of(measured: Rows) -> list[int]:
    """Return the paper's depth, which alone has a run of its own, then the others."""
    first = measured.where(task="run").levels("depth")
    every = measured.where(task="levels").levels("depth")
    return [*first, *(depth for depth in every if depth not in first)]


def _gap(first: Rows, second: Rows, *, log: bool) -> Estimate:
    """Return first minus second over the networks that both have."""
    both = sorted({*first.levels("trial")} & {*second.levels("trial")})
    a, b = (
        np.array([rows.value(trial=trial) for trial in both])
        for rows in (first, second)
    )
    return estimate(np.log10(a) - np.log10(b) if log else a - b)


def gaps(
    measured: Rows, quantity: str, depth: int, other: str
) -> dict[float, tuple[float, Estimate]]:
    """Return, by level, the loss and by how much another kind exceeds 2-shortcut."""
    mine = levels(measured, quantity, "two_shortcut", depth)
    theirs = levels(measured, quantity, other, depth)
    log = quantity == "ratio"
    return {
        f: (mine[f].values("loss")[0], _gap(theirs[f], mine[f], log=log))
        for f in mine
        if f in theirs and {*mine[f].levels("trial")} & {*theirs[f].levels("trial")}
    }


def number(found: Estimate) -> Number:
    """Return a mean with its standard error."""
    return Number(found.mean, found.stderr)


def sure(n: int, looks: int = 1) -> float:
    """Return how many standard errors of n networks a mean must be from zero.

    Args:
        n: Networks.
        looks: Means of which the most extreme is taken (Bonferroni).
    """
    from scipy.stats import t

    chance = (1 - LEVEL) / 2 / looks
    return float(t.ppf(1 - chance, n - 1)) if n > 1 else float("inf")


def always_less(
    measured: Rows, quantity: str, depth: int, *, holds: str, fails: str
) -> Verdict:
    """Judge whether 2-shortcut networks are below plain ones at every level.

    It holds if they are at each, and fails if they are above at one of them by more
    than the most extreme of so many levels would be by chance. Plain networks of which
    there is one only are shown and do not count.
    """
    unit = "log10 ratio" if quantity == "ratio" else quantity
    numbers: dict[str, Number | float] = {}
    found: list[Estimate] = []
    for other in ("orthogonal", "xavier"):
        for loss, gap in gaps(measured, quantity, depth, other).values():
            name = f"{unit}, {other} less 2-shortcut, at loss {loss:.3g}"
            numbers[name] = number(gap) if gap.n > 1 else gap.mean
            if gap.n > 1:
                found.append(gap)
    above, runs = _above(measured, quantity, depth)
    numbers["2-shortcut runs above their orthogonal twin at some loss"] = above
    numbers["of how many"] = runs
    if not found:
        return undecided(ALONE, numbers)
    below = min(score(gap) for gap in found) > 1
    if not below and min(score(gap, looks=len(found)) for gap in found) >= -1:
        return undecided(
            "at some level the two differ by less than the spread over networks",
            numbers,
        )
    return holds_if(below, numbers, holds=holds, fails=fails)


def _above(measured: Rows, quantity: str, depth: int) -> tuple[int, int]:
    """Return how many runs exceed the orthogonal one of their seed, and how many are.

    A pairing of unrelated networks: a count of single runs, where means hide them.
    """
    kinds = ("two_shortcut", "orthogonal")
    mine, theirs = (levels(measured, quantity, kind, depth) for kind in kinds)
    above: set[int] = set()
    trials: set[int] = set()
    for f in mine.keys() & theirs.keys():
        twins = {row["trial"]: row["value"] for row in theirs[f]}
        here = {row["trial"]: row["value"] for row in mine[f] if row["trial"] in twins}
        trials |= here.keys()
        above |= {trial for trial, value in here.items() if value > twins[trial]}
    return len(above), len(trials)


def score(found: Estimate, looks: int = 1) -> float:
    """Return a mean in units of what would be sure to differ from zero."""
    if found.stderr == 0:
        return float(np.sign(found.mean)) * float("inf") if found.mean else 0.0
    return found.mean / (found.stderr * sure(found.n, looks))
