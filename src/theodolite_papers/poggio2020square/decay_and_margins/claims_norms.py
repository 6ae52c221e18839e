"""Claims: small norms have wide margins, and final norms depend on initial ones."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from theodolite.core import (
    Alive,
    Choice,
    Claim,
    Judgement,
    Number,
    PredictedAndMeasured,
    Read,
    ReadAs,
    Row,
    Rows,
    Test,
    above,
    below,
    beyond,
    each,
    every,
    group_means,
    inside,
    mean,
    measured,
    ordered,
    our_margin,
    readings,
    somewhere,
    trend,
)

from ..shared.rows import rank_correlation
from .config import FITTED, LARGE_START, LEARNT, LEVELS, PAPER_DECAY, SMALL_START

# No start has a norm near the bound.
ALIVE = Alive(
    by=("decay", "start", "noise", "trial"),
    loss="train_loss",
    chance=LEARNT,
    over="epoch",
    bounds={"norm": 1e12},
)
NORM_READINGS = {
    "product": (
        "all layers",
        "The norm is the product over all layers.",
        "section 2.1; figure 2 is headed Rho from All Layers",
    ),
    "last": (
        "last layer",
        "The norm is that of the last layer.",
        "section 2.3: with batch norms ρ_k = 1 for all k < L and ρ_L = ρ",
    ),
}


FOLDED = (
    "folded",
    "The norm is the product with batch norms folded in.",
    "section 2.1: |f| is at most 1 for unit layers",
)


def norms(make: Callable[[str], Test]) -> Test:
    """Judge a test for both things that the paper calls ρ of such networks."""
    return readings(
        *(ReadAs(*told, make(norm)) for norm, told in NORM_READINGS.items())
    )


CLOSE = Choice(
    what=f"runs with a mean squared residual below {FITTED}",
    why="the paper speaks of solutions close to interpolation and gives no distance",
)
HELD = Choice(
    what="samples held out stand for the expected error", why="it cannot be computed"
)


def rank(of: str, reading: str, over: str = "all") -> Read:
    """Read the mean over trials of a rank correlation with the norm."""
    rows = measured("rank", of=of, reading=reading, over=over)
    title = f"rank correlation of the norm ({reading}) with {of.replace('_', ' ')}"
    return mean(rows, name=title if over == "all" else f"{title}, over {over}")


@cache
def _folded(of: str) -> Callable[[Rows], Rows]:
    """Return rank correlations of norms with batch norms folded in, per trial.

    They are of the last reading of runs that fit; the one before tells the error.
    Margins are those by the product of norms, times the ratio of both.
    """

    def among(rows: Rows) -> Rows:
        losses = _clean(rows, "train_loss")
        fits = {_key(r) for r in losses if (r["value"] or math.inf) < FITTED}
        numbers = {
            _key(r): r["value"]
            for r in _clean(rows, of)
            if r.get("reading") in (None, "product")
        }
        at: dict[tuple, float] = {
            (*_key(row), row["reading"], row["epoch"]): row["value"]
            for row in _clean(rows, "norm_at")
        }
        epochs = sorted({key[-1] for key in at})[-2:]
        if len(epochs) < 2:
            return Rows()

        def rank_of(trial: int, epoch: int) -> float:
            pairs = []
            for run in fits:
                if (
                    run[-1] == trial
                    and run in numbers
                    and (*run, "folded", epoch) in at
                ):
                    norm = at[*run, "folded", epoch]
                    ratio = at[*run, "product", epoch] / norm
                    scale = 1.0 if of == "test_error" else ratio
                    pairs.append((norm, numbers[run] * scale))
            return rank_correlation(*zip(*pairs, strict=True)) if pairs else math.nan

        table = []
        for trial in sorted({run[-1] for run in fits}):
            before, value = (rank_of(trial, epoch) for epoch in epochs)
            row = {"quantity": "folded_rank", "trial": trial, "value": value}
            if not math.isnan(value):
                table.append({**row, "error": abs(value - before)})
        return Rows(table)

    return among


def _clean(rows: Rows, quantity: str) -> Rows:
    return rows.where(quantity=quantity, noise=0.0)


def _key(row: Row) -> tuple:
    return row["decay"], row["start"], row["trial"]


def folded_rank(of: str) -> Read:
    """Read the mean over trials of a rank correlation with the folded norm."""
    title = f"rank correlation of the norm (folded) with {of.replace('_', ' ')}"
    return mean(measured("folded_rank").out_of(_folded(of)), name=title)


def where_folded(listed: Iterable[ReadAs], folded: Iterable[ReadAs]) -> Test:
    """Judge readings, and those of folded norms in runs whose norms were folded."""
    always, more = list(listed), list(folded)

    def test(both: PredictedAndMeasured) -> Judgement:
        read = [one for one in more if not one.test(both).missing]
        return readings(*always, *read)(both)

    return test


def _run(decay: float, start: float) -> dict[str, Any]:
    return {"decay": decay, "start": start, "noise": 0.0}


MARGINS = {"mean": "observation 2", "least": "lemma 1, item 1: the best margin"}
NORMS = (
    Claim(
        name="small-norm-wide-margin",
        place="Observation 2; lemma 1, item 1; section 1.2",
        statement="Among solutions close to interpolation, those of smaller $\\rho$ "
        "have a larger average margin $\\sum_n y_n f_n$.",
        test=where_folded(
            (
                ReadAs(
                    f"{of}, {told[0]}",
                    f"{told[1]} The margin is the {of} over all samples.",
                    f"{source}; {told[2]}",
                    inside(rank(f"{of}_margin", norm), below(0)),
                )
                for of, source in MARGINS.items()
                for norm, told in NORM_READINGS.items()
            ),
            (
                ReadAs(
                    f"{of}, {FOLDED[0]}",
                    f"{FOLDED[1]} The margin is the {of} over all samples.",
                    f"{source}; {FOLDED[2]}",
                    inside(folded_rank(f"{of}_margin"), below(0)),
                )
                for of, source in MARGINS.items()
            ),
        ),
        rival="margins that norms do not order; at interpolation itself the mean "
        "margin is the inverse norm, the least one need not be",
        choices=(CLOSE,),
    ),
    Claim(
        name="small-norm-small-error",
        place="Section 4; appendix E.1",
        statement="Among solutions close to interpolation, those of smaller $\\rho$ "
        "generalise better: $\\rho$ controls the expected error.",
        test=where_folded(
            (
                ReadAs(*told, inside(rank("test_error", norm), above(0)))
                for norm, told in NORM_READINGS.items()
            ),
            [ReadAs(*FOLDED, inside(folded_rank("test_error"), above(0)))],
        ),
        rival="errors on new samples that norms do not order, as a bound allows",
        choices=(CLOSE, HELD),
        departures=("norms of single matrices were not kept, their product was",),
    ),
    beyond(
        name="whatever-made-the-norm",
        place="Beside observation 2",
        statement="Smaller $\\rho$ goes with fewer errors on new samples whether decay "
        "made it smaller, at one start, or the start did, without decay.",
        test=norms(
            lambda norm: every(
                inside(rank("test_error", norm, over), above(0))
                for over in ("decays", "starts")
            )
        ),
        rival="a decay or a start that betters the error and moves the norm besides",
        choices=(HELD,),
    ),
    beyond(
        name="decay-keeps-margins-apart",
        place="Beside section 1.2, figures 5 and 8",
        statement="At every decay and from every start the margins of all samples "
        "become more alike in training, and from small starts the less so, the more "
        "decay.",
        test=every(
            each(
                "decay",
                measured("margin_spread", stage="end"),
                lambda decay: each(
                    "start",
                    measured("margin_spread", stage="end", decay=decay, noise=0.0),
                    lambda start: ordered(
                        measured("margin_spread", stage="end", **_run(decay, start)),
                        measured("margin_spread", stage="early", **_run(decay, start)),
                        log=True,
                        name=f"log10 spread of margins lost (decay {decay})",
                    ),
                ),
            ),
            trend(
                measured(
                    "margin_spread",
                    lambda row: row["decay"] > 0,
                    stage="end",
                    start=SMALL_START,
                    noise=0.0,
                ),
                over="decay",
                slope_in=above(0),
                name="exponent of the spread of margins in the decay",
            ),
        ),
        rival="decay that evens out margins as it lowers the norm",
        choices=(
            Choice(
                what="the spread is the deviation over samples by the root mean square",
                why="margins shrink as the norm grows, all of them alike",
            ),
        ),
    ),
)


HALF, FIFTH = LEVELS
FORGOTTEN = our_margin(
    0.1, "a start of fifty times the norm then moves the end by a factor below 1.5"
)
REMEMBERED = above(
    0.1, source="ours", why="the margin within which ends count as independent"
)
TURNED = Choice(
    what="the dependence is the exponent of the last norm in the first, over starts",
    why="the paper shows curves; all that it asks is whether they meet",
)


def memory(reading: str, *, decay: float, noise: float = 0.0) -> Read:
    """Read the power of the initial norm by which the final norm grows."""
    rows = measured("memory", stage="end", reading=reading, decay=decay, noise=noise)
    title = f"exponent of the last norm ({reading}) in the first, decay {decay:g}"
    return mean(rows, name=f"{title}, noise {noise:g}" if noise else title)


def _thresholds(both: PredictedAndMeasured) -> Mapping[str, Number]:
    """Return decays at which the dependence falls to a half and a fifth, by length.

    If one trial's decay is the lowest or highest one tried, the mean is left out.
    """
    names = {HALF: "halved", FIFTH: "a fifth"}
    rows = both.measured.where(quantity="threshold", reading="product")
    return {
        f"decay at which dependence is {names[row['level']]}, {row['epoch']} epochs": (
            Number(row["value"], row["error"])
        )
        for row in group_means(rows, ("level", "epoch"))
        if not any(rows.where(level=row["level"], epoch=row["epoch"]).column("edge"))
    }


def _large(decay: float) -> dict[str, Any]:
    return {"stage": "end", "reading": "product", **_run(decay, LARGE_START)}


STARTS = (
    Claim(
        name="enough-decay-forgets",
        place="Sections 1.2 and 3",
        statement="If the weight decay is large enough, the end may be independent of "
        "the start, and has a strong bias towards small norms even from large starts; "
        "otherwise a small start is required.",
        test=every(
            norms(lambda norm: inside(memory(norm, decay=0.0), REMEMBERED)),
            norms(
                lambda norm: somewhere(
                    "decay",
                    measured("memory", stage="end", noise=0.0),
                    lambda decay: inside(memory(norm, decay=decay), FORGOTTEN),
                    where=lambda decay: decay >= PAPER_DECAY,
                )
            ),
            somewhere(
                "decay",
                measured("norm", stage="end", start=LARGE_START, noise=0.0),
                lambda decay: ordered(
                    measured("norm", **_large(decay)),
                    measured("norm", **_large(0.0)),
                    log=True,
                    by=above(1, source="ours", why="smaller by a factor of 10"),
                    name=f"log10 norm lost by decay {decay:g}, large start",
                ),
                where=lambda decay: decay >= PAPER_DECAY,
            ),
        ),
        rival="ends that every decay tried leaves apart",
        choices=(
            TURNED,
            Choice(
                what=f"large enough is {PAPER_DECAY} or more",
                why="the decay of the captions; the paper gives no other",
            ),
        ),
        asides=_thresholds,
    ),
    beyond(
        name="enough-is-a-matter-of-time",
        place="Beside section 3",
        statement="The decay that halves the dependence on the start is inversely "
        "proportional to the length of training: what forgets is the time that decay "
        "has had, $\\eta\\lambda t/(1 - \\mu)$.",
        test=norms(
            lambda norm: trend(
                measured("threshold", level=HALF, reading=norm),
                over="epoch",
                slope_in=our_margin(
                    0.2, "between powers one would tell apart", centre=-1.0
                ),
                name="exponent of the decay in the epochs",
            )
        ),
        rival="a decay that is large enough at any length, as of a landscape",
        asides=_thresholds,
    ),
    beyond(
        name="errors-forget-too",
        place="Beside section 3",
        statement=f"With a weight decay of {PAPER_DECAY} errors on new samples do not "
        "depend on the start either; without decay large starts err more.",
        test=every(
            ordered(
                measured("test_error", **_run(PAPER_DECAY, SMALL_START)),
                measured("test_error", **_run(PAPER_DECAY, LARGE_START)),
                by=our_margin(0.02, "two samples of a hundred"),
                name=f"errors of large less small starts, decay {PAPER_DECAY:g}",
            ),
            ordered(
                measured("test_error", **_run(0.0, SMALL_START)),
                measured("test_error", **_run(0.0, LARGE_START)),
                name="errors of large less small starts, no decay",
            ),
        ),
        rival="errors that remember what norms forget",
        choices=(HELD,),
    ),
)
