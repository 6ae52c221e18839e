"""What figure 5 and the prose around it claim, judged from rows."""

from itertools import pairwise

import numpy as np

from theodolite.core import (
    Claim,
    Estimate,
    Kind,
    Number,
    Rows,
    Verdict,
    estimate,
    holds_if,
    undecided,
)
from theodolite.studies.li2016demystifying import along_training_index
from theodolite.studies.li2016demystifying.along_training_levels import (
    always_less,
    depths_of,
    gaps,
    levels,
    number,
    sure,
)
from theodolite.studies.li2016demystifying.judging import ALONE, largest

# Decades within which two condition numbers count as alike: a factor of three.
ALIKE = 0.5


def _always_better(predicted: Rows, measured: Rows) -> Verdict:
    return always_less(
        measured,
        "ratio",
        depths_of(measured)[0],
        holds="at every level of the loss 2-shortcut networks are better conditioned "
        "than plain ones",
        fails="at some level of the loss 2-shortcut networks are worse conditioned",
    )


def _elsewhere(predicted: Rows, measured: Rows) -> Verdict:
    return always_less(
        measured,
        "ratio",
        depths_of(measured)[1],
        holds="at this depth, too, 2-shortcut networks are better conditioned at every "
        "level of the loss",
        fails="at this depth 2-shortcut networks are worse conditioned at some level "
        "of the loss",
    )


def _large_loss(predicted: Rows, measured: Rows) -> Verdict:
    found = list(gaps(measured, "ratio", depths_of(measured)[0], "orthogonal").values())
    (_, first), rest = found[0], found[1:]
    loss, most = max(rest, key=lambda pair: pair[1].mean)
    numbers: dict[str, Number | float] = {
        f"log10 advantage at loss {found[0][0]:.3g}": number(first),
        f"largest later one, at loss {loss:.3g}": number(most),
    }
    error = float(np.hypot(first.stderr, most.stderr))
    if not abs(first.mean - most.mean) > error * sure(first.n):
        return undecided("the spread over networks is as large as the gap", numbers)
    return holds_if(
        first.mean > most.mean,
        numbers,
        holds="the advantage in condition number is largest while the loss is",
        fails="the advantage is largest at a lower loss",
    )


def _tail(measured: Rows, kind: str) -> list[tuple[float, Estimate]]:
    found = levels(measured, "ratio", kind, depths_of(measured)[0]).values()
    return [(r.values("loss")[0], estimate(np.log10(r.values()))) for r in found]


def _meet(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    rise, ends = 0.0, []
    for kind in ("two_shortcut", "orthogonal"):
        (_, before), (loss, last) = _tail(measured, kind)[-2:]
        numbers[f"log10 ratio at loss {loss:.3g}, {kind}"] = number(last)
        numbers[f"its rise since the level before, {kind}"] = last.mean - before.mean
        rise = max(rise, last.mean - before.mean)
        ends.append(last.mean)
    return holds_if(
        rise < ALIKE and abs(ends[0] - ends[1]) < ALIKE,
        numbers,
        holds="the condition numbers level off at one value",
        fails="the condition numbers do not settle at one value: one still grows by "
        "more than a factor of three from the last level but one to the last, or they "
        "end that far apart",
    )


def _diverges(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    grows = True
    for kind in ("two_shortcut", "orthogonal"):
        logs = _tail(measured, kind)[-3:]
        grows &= all(b.mean > a.mean for (_, a), (_, b) in pairwise(logs))
        for loss, found in logs:
            numbers[f"log10 ratio at loss {loss:.3g}, {kind}"] = number(found)
    bound = predicted.value(quantity="rank_at_optimum")
    rank = largest(measured, "optimum_rank")
    small = largest(measured, "optimum_small")
    least = min(measured.where(quantity="optimum_rank").column("parameters"))
    numbers |= {
        "largest rank of the Hessian at an optimum": rank,
        "bound on it, the square of the width": bound,
        "fewest parameters": least,
        "10th percentile over largest at an optimum": small,
        "largest excess loss there": largest(measured, "optimum_excess"),
    }
    return holds_if(
        grows and rank.value <= bound < 0.9 * least and small.value < 1e-9,
        numbers,
        holds="the ratio grows towards the optimum, where the Hessian has rank at most "
        "the square of the width and the 10th percentile is zero",
        fails="the ratio levels off, or the Hessian at an optimum has full rank",
    )


def _like_orthogonal(predicted: Rows, measured: Rows) -> Verdict:
    depth = depths_of(measured)[0]
    numbers: dict[str, Number | float] = {}
    worst = least = rival = 0.0
    for kind in ("one_shortcut", "two_shortcut"):
        mine = levels(measured, "ratio", kind, depth)
        theirs = levels(measured, "ratio", "orthogonal", depth)
        apart = {
            f: _decades(mine[f], theirs[f])
            for f in sorted(mine.keys() & theirs.keys(), reverse=True)
        }
        if kind == "one_shortcut":
            for f, gap in apart.items():
                loss = mine[f].values("loss")[0]
                numbers[f"decades from orthogonal at loss {loss:.3g}"] = gap
            worst = max(gap.value for gap in apart.values())
            least = max(gap.value - 2 * (gap.error or 0.0) for gap in apart.values())
        else:
            rival = max(gap.value for gap in apart.values())
            numbers["most decades of 2-shortcut from orthogonal"] = rival
    if any(gap.error is None for gap in numbers.values() if isinstance(gap, Number)):
        return undecided(ALONE, numbers)
    if worst >= ALIKE > least:
        return undecided(
            "1-shortcut networks leave the orthogonal ones by more than a factor of "
            "three at some loss, but within two standard errors of it",
            numbers,
        )
    return holds_if(
        worst < ALIKE < rival,
        numbers,
        holds="1-shortcut networks have the condition numbers of orthogonal ones, "
        "within a factor of three, along the whole of training",
        fails="1-shortcut networks leave the orthogonal ones by more than a factor of "
        "three on the way"
        if worst >= ALIKE
        else "2-shortcut networks are within a factor of three of orthogonal ones, too",
    )


def _decades(first: Rows, second: Rows) -> Number:
    """Return how far apart two kinds are, with its error over networks."""
    a, b = (estimate(np.log10(rows.values())) for rows in (first, second))
    error = float(np.hypot(a.stderr, b.stderr)) if min(a.n, b.n) > 1 else None
    return Number(abs(a.mean - b.mean), error)


CLAIMS = (
    Claim(
        name="better-at-every-loss",
        place="Figure 5, section 5.2",
        statement=(
            "At depth 16 the condition number of 2-shortcut networks is smaller than "
            "that of plain ones at every loss."
        ),
        check=_always_better,
        rival="curves that cross",
    ),
    Claim(
        name="better-at-another-depth",
        place="Figure 5, section 5.2, at another depth",
        statement=(
            "The same holds at a depth that the paper does not show: 2-shortcut "
            "networks are better conditioned at every loss."
        ),
        check=_elsewhere,
        rival="curves that cross at low loss",
    ),
    Claim(
        name="better-most-at-large-loss",
        place="Figure 5, section 5.2",
        statement="The advantage is largest when the loss is large.",
        check=_large_loss,
        rival="an advantage that is larger near the optimum",
    ),
    Claim(
        name="condition-numbers-meet",
        place="Figure 5, section 5.2",
        statement=(
            "Condition numbers of orthogonal and 2-shortcut networks evolve to the "
            "same value, since minimisers have similar condition numbers."
        ),
        check=_meet,
        rival="ratios that grow without bound",
    ),
    Claim(
        name="ratio-diverges",
        place="Figure 5, section 5.2",
        kind=Kind.ERRATUM,
        statement=(
            "At a minimiser of a linear network the Hessian is $J^T J$ with at most "
            "$d^2$ non-zero eigenvalues among $L\\,d^2$: the 10th percentile is 0 and "
            "the ratio diverges as the loss goes to its optimum, for every kind."
        ),
        printed="minimisers, and any point near them, have similar condition numbers",
        corrected=(
            "$|\\lambda|_{\\max}/|\\lambda|_{(0.1)} \\to \\infty$ for $L \\geq 2$"
        ),
        check=_diverges,
        rival="a ratio that levels off",
    ),
    Claim(
        name="one-shortcut-like-orthogonal",
        place="Section 5",
        statement=(
            "The training dynamics of 1-shortcut networks are similar to those of "
            "linear networks with orthogonal initialisation."
        ),
        check=_like_orthogonal,
        rival="condition numbers apart by more than a factor of three",
    ),
    *along_training_index.CLAIMS,
)
