"""What the phase diagram is judged on."""

from collections.abc import Mapping

import numpy as np

from theodolite.core import (
    Claim,
    Number,
    Rows,
    Verdict,
    holds_if,
    paired_test,
    undecided,
)
from theodolite.studies.li2016demystifying.phases import (
    DIVERGES,
    KINDS,
    STUCK,
    TRAINS,
)

_LABELS = ("family", "kind", "depth", "scale", "trial", "lr")


def table(predicted: Rows, measured: Rows) -> Mapping[str, np.ndarray]:
    """Return the phases of all runs, in one order: measured, predicted and rivals."""
    ends = {_key(row): row["value"] for row in measured.where(quantity="measured")}
    keys = sorted(ends, key=str)
    found = {"measured": np.array([ends[key] for key in keys])}
    for name in ("predicted", "sharpness_only"):
        said = {_key(row): row["value"] for row in predicted.where(quantity=name)}
        found[name] = np.array([said[key] for key in keys])
    found["always"] = np.full(len(keys), TRAINS)
    found["network"] = np.array([str(key[:-1]) for key in keys])
    return found


def scores(predicted: Rows, measured: Rows) -> dict[str, np.ndarray]:
    """Return each predictor's share of runs right, a value a network."""
    runs = table(predicted, measured)
    _, group = np.unique(runs["network"], return_inverse=True)
    count = np.bincount(group)
    return {
        name: np.bincount(group, weights=runs[name] == runs["measured"]) / count
        for name in ("predicted", "sharpness_only", "always")
    }


def _key(row: Mapping) -> tuple:
    return tuple(row[name] for name in _LABELS)


def _number(values: np.ndarray) -> Number:
    spread = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return Number(float(values.mean()), spread / np.sqrt(len(values)))


def _beats(predicted: Rows, measured: Rows) -> Verdict:
    found = scores(predicted, measured)
    numbers: dict[str, Number | float | int] = {
        "share right, quadratic model": _number(found["predicted"]),
        "share right, sharpness alone": _number(found["sharpness_only"]),
        "share right, always trains": _number(found["always"]),
    }
    worst = 0.0
    for rival in ("sharpness_only", "always"):
        test = paired_test(found["predicted"], found[rival])
        better = test.difference > 0
        worst = max(worst, test.p_value if better else 1.0)
    numbers["largest p-value against a rival"] = worst
    return holds_if(
        worst < 0.01,
        numbers,
        holds="the model at the start foretells more runs than either rival",
        fails="a rival foretells as many runs as the model at the start",
    )


def _right(predicted: Rows, measured: Rows) -> Verdict:
    runs = table(predicted, measured)
    share = _number(scores(predicted, measured)["predicted"])
    numbers: dict[str, Number | float | int] = {"share right": share}
    names = {DIVERGES: "divergences", STUCK: "stays", TRAINS: "successes"}
    for phase, name in names.items():
        ends = runs["measured"][runs["predicted"] == phase]
        if len(ends):
            numbers[f"share of foretold {name} that happened"] = _share(ends == phase)
    if not abs(share.value - 0.75) > 2 * (share.error or 0.0):
        return undecided("the share is within two errors of three in four", numbers)
    return holds_if(
        share.value > 0.75,
        numbers,
        holds="three runs in four and more end as foretold at the first step",
        fails="fewer than three runs in four end as foretold at the first step",
    )


def _share(right: np.ndarray) -> Number:
    share = float(right.mean())
    return Number(share, float(np.sqrt(share * (1 - share) / len(right))))


def _optimism(predicted: Rows, measured: Rows) -> Verdict:
    runs = table(predicted, measured)
    wrong = runs["predicted"] != runs["measured"]
    lost = runs["measured"][wrong] == DIVERGES
    if not len(lost):
        return undecided("no run was foretold wrongly", {"runs foretold wrongly": 0})
    share = _share(lost)
    numbers: dict[str, Number | float | int] = {
        "runs foretold wrongly": len(lost),
        "share of these that diverged": share,
    }
    if abs(share.value - 0.5) <= 2 * (share.error or 0.0):
        return undecided("about half of the errors are of either kind", numbers)
    return holds_if(
        share.value > 0.5,
        numbers,
        holds="most errors are divergences not foretold: curvature grows on the way "
        "down, and the start cannot see it",
        fails="most errors are of another kind than divergences not foretold",
    )


def _widest(predicted: Rows, measured: Rows) -> Verdict:
    ends = measured.where(quantity="measured")
    deepest = max(ends.levels("depth"))
    shares = {
        kind: _share(ends.where(kind=kind, depth=deepest).values() == TRAINS)
        for kind in KINDS
    }
    numbers: dict[str, Number | float | int] = {
        f"share of runs that train, {kind}, depth {deepest}": share
        for kind, share in shares.items()
    }
    mine = shares.pop("two_shortcut")
    best = max(shares.values(), key=lambda share: share.value)
    gap = mine.value - best.value
    if abs(gap) <= 2 * float(np.hypot(mine.error or 0.0, best.error or 0.0)):
        return undecided(
            "2-shortcut networks and another length train in parts of the box that "
            "differ by less than the error of counting runs",
            numbers,
        )
    return holds_if(
        gap > 0,
        numbers,
        holds="2-shortcut networks train in the largest part of the box",
        fails="another length trains in a larger part of the box",
    )


CLAIMS = (
    Claim(
        name="phases-foretold",
        place="Beyond the paper",
        statement="Loss, gradient and Hessian at the start tell which runs train: the "
        "quadratic model foretells more phases than the rule $\\eta\\lambda_{\\max}<2$ "
        "and than the guess that all train.",
        check=_beats,
        rival="sharpness alone, or the guess that everything trains, does as well",
    ),
    Claim(
        name="most-foretold",
        place="Beyond the paper",
        statement="More than three runs in four end as the quadratic model at the "
        "start says.",
        check=_right,
        rival="the landscape away from the start decides",
    ),
    Claim(
        name="errors-are-late-divergence",
        place="Beyond the paper",
        statement="Where the model is wrong, it mostly misses a divergence: curvature "
        "grows along the way.",
        check=_optimism,
        rival="the model errs as often on runs that stay",
    ),
    Claim(
        name="two-shortcut-trains-widest",
        place="Sections 4 and 5, taken over all scales and rates",
        statement="At the largest depth 2-shortcut networks train in a larger part of "
        "the box of scales and rates than plain, 1- and 3-shortcut ones.",
        check=_widest,
        rival="another shortcut length trains more widely",
    ),
)
