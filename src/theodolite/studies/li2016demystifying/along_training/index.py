"""What figure 6 and the prose around it claim, judged from rows."""

import numpy as np

from theodolite.core import (
    Claim,
    Kind,
    Number,
    Rows,
    Verdict,
    estimate,
    holds_if,
    undecided,
)
from theodolite.studies.li2016demystifying.along_training_levels import (
    always_less,
    depths_of,
    number,
    score,
)
from theodolite.studies.li2016demystifying.judging import ALONE


def _index_less(predicted: Rows, measured: Rows) -> Verdict:
    return always_less(
        measured,
        "index",
        depths_of(measured)[0],
        holds="at every level of the loss 2-shortcut networks have fewer negative "
        "eigenvalues than plain ones",
        fails="at some level of the loss 2-shortcut networks have more",
    )


def _index_start(predicted: Rows, measured: Rows) -> Verdict:
    half = predicted.where(quantity="index").values()
    starts = measured.where(task="levels", kind="two_shortcut", quantity="index")
    mine = estimate(starts.where(step=0).values())
    numbers: dict[str, Number | float] = {
        "index at zero weights, every depth": float(half.mean()),
        "index of 2-shortcut at the start": number(mine),
    }
    rows = measured.where(task="start", quantity="first_index")
    shallow = min(rows.levels("depth"))
    highest = -np.inf
    for kind in rows.levels("kind"):
        for depth in rows.levels("depth"):
            found = estimate(rows.where(kind=kind, depth=depth).values())
            numbers[f"{kind} at the start, depth {depth}"] = number(found)
            if depth == shallow:
                highest = max(highest, found.mean + 3 * found.stderr)
    if len(rows.levels("trial")) < 2:
        return undecided(ALONE, numbers)
    exact = bool(np.all(half == 0.5)) and abs(mine.mean - 0.5) < 0.01
    return holds_if(
        exact and highest < mine.mean,
        numbers,
        holds="2-shortcut networks start at one half, where shallow plain networks "
        "start below it",
        fails="2-shortcut networks do not start at one half, or plain ones start above",
    )


def _drop(predicted: Rows, measured: Rows) -> Verdict:
    depth = depths_of(measured)[0]
    rows = measured.where(task="levels", kind="two_shortcut", depth=depth)
    rows = rows.where(quantity="index")
    drops, shares = [], []
    for trial in rows.levels("trial"):
        mine = rows.where(trial=trial)
        start = mine.where(step=0).values()[0]
        later = mine.where(lambda row: row.get("fraction") is not None)
        order = np.argsort(-later.values("loss"))
        index, fraction = later.values()[order], later.values("fraction")[order]
        early = index[: np.flatnonzero(fraction <= 0.2)[0] + 1]
        drops.append(start - index.min())
        shares.append((start - early.min()) / drops[-1] if drops[-1] else 0.0)
    drop, share = estimate(drops), estimate(shares)
    numbers: dict[str, Number | float] = {
        "drop of the index": number(drop),
        "share of it before a fifth of the excess loss is left": number(share),
    }
    if drop.n < 2:
        return undecided(ALONE, numbers)
    return holds_if(
        share.mean > 0.8 and score(drop) > 1,
        numbers,
        holds="nearly all of the drop of the index comes with the first fall of the "
        "loss",
        fails="the index does not drop, or not at the beginning",
    )


def peak(rows: Rows) -> int:
    """Return the step at which a run's gradient is largest."""
    gradient = rows.where(quantity="gradient")
    return int(gradient.values("step")[np.argmax(gradient.values())])


def _gradient(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="run")
    found = rows.where(quantity="index")
    steps, index = found.values("step"), found.values()
    spacing = float(np.diff(steps).max())
    lowest = int(np.argmin(index))
    down = (index[0] - index) / max(index[0] - index[lowest], 1e-300)
    begin, end = (_first(steps, down > share) for share in (0.1, 0.9))
    top = peak(rows)
    return holds_if(
        begin - spacing <= top <= end,
        {
            "step of the largest gradient": Number(top, spacing),
            "step at which a tenth of the drop is made": Number(begin, spacing),
            "step at which nine tenths are made": Number(end, spacing),
            "drop of the index": float(index[0] - index[lowest]),
        },
        holds="the gradient is largest while the index falls",
        fails="the gradient is largest before the index falls, or after",
    )


def _first(steps: np.ndarray, there: np.ndarray) -> float:
    return float(steps[np.argmax(there)]) if there.any() else float("nan")


def _negative(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="run", quantity="curvature")
    top = peak(measured.where(task="run"))
    before = rows.where(lambda row: row["step"] < top)
    after = rows.where(lambda row: row["step"] > top)
    if not len(before) or not len(after):
        return undecided("the largest gradient is at an end of the run", {"step": top})
    highest, lowest = before.values().max(), after.values().min()
    return holds_if(
        highest < 0 and before.values().mean() < 0 < after.values().mean(),
        {
            "highest curvature along the gradient before its peak": highest,
            "lowest after it": lowest,
        },
        holds="descent follows negative curvature until the gradient peaks, and "
        "positive curvature from then on",
        fails="the curvature along the gradient is positive before its peak, or not "
        "after it",
    )


CLAIMS = (
    Claim(
        name="index-always-smaller",
        place="Figure 6 left, section 5.2",
        statement=(
            "At equal loss 2-shortcut networks have a smaller fraction of negative "
            "eigenvalues than plain ones."
        ),
        check=_index_less,
        rival="curves that cross",
    ),
    Claim(
        name="index-starts-at-half",
        place="Figure 6 left, section 5.2",
        kind=Kind.ERRATUM,
        statement=(
            "At the start the index of 2-shortcut networks is not the smaller one: it "
            "is $1/2$ at every depth, and shallow plain networks start below."
        ),
        printed="the index of a 2-shortcut network is always smaller",
        corrected=(
            "smaller than that of orthogonal networks at equal loss once the loss has "
            "begun to fall; at the start exactly $1/2$, more than that of shallow "
            "plain networks"
        ),
        check=_index_start,
        rival="plain networks that start at one half or above",
    ),
    Claim(
        name="index-drops-first",
        place="Figure 6 left, section 5.2",
        statement="The index of 2-shortcut networks drops at the beginning.",
        check=_drop,
        rival="a drop spread over the whole of training",
    ),
    Claim(
        name="gradient-peaks-as-index-drops",
        place="Figure 6 right",
        statement="The gradient reaches its maximum while the index drops.",
        check=_gradient,
        rival="a peak before the drop, or after it",
    ),
    Claim(
        name="towards-negative-curvature",
        place="Figure 6 right, section 5.2",
        statement=(
            "Near the saddle at which training starts it follows directions of "
            "negative curvature; the gradient peaks where they end."
        ),
        check=_negative,
        rival="positive curvature along the gradient from the start",
    ),
)
