"""Small norms, wide margins, and what they do for the error on new samples."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Number,
    PredictedAndMeasured,
    Read,
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
    trend,
)

from .config import FITTED, SMALL_START

READINGS = ("product", "last")
BOTH = Choice(
    what="the norm is the product over all layers, and that of the last alone",
    why="the definition and figure 2 say the one; for batch norms the paper sets "
    "$\\rho_k = 1$ for all layers but the last",
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
    told = f"rank correlation of the norm ({reading}) with {of.replace('_', ' ')}"
    return mean(rows, name=told if over == "all" else f"{told}, over {over}")


def _least(both: PredictedAndMeasured) -> Mapping[str, Number]:
    """Return rank correlations of norms with the least margin."""
    rows = both.measured.where(quantity="rank", of="least_margin", over="all")
    return {
        f"rank correlation of the norm ({row['reading']}) with the least margin": (
            Number(row["value"], row["error"])
        )
        for row in group_means(rows, ("reading",))
    }


NORMS = (
    Claim(
        name="small-norm-wide-margin",
        place="Observation 2; lemma 1, item 1; section 1.2",
        statement=(
            "Among solutions close to interpolation, those of smaller $\\rho$ have a "
            "larger average margin $\\sum_n y_n f_n$."
        ),
        test=every(
            inside(rank("mean_margin", reading), below(0)) for reading in READINGS
        ),
        asides=_least,
        rival="margins that norms do not order",
        choices=(BOTH, CLOSE),
    ),
    Claim(
        name="small-norm-small-error",
        place="Abstract; appendix E.1",
        statement=(
            "Among solutions close to interpolation, those of smaller $\\rho$ classify "
            "new samples better."
        ),
        test=every(
            inside(rank("test_error", reading), above(0)) for reading in READINGS
        ),
        rival="errors on new samples that norms do not order, as a bound allows",
        choices=(BOTH, CLOSE, HELD),
    ),
    beyond(
        name="whatever-made-the-norm",
        place="Beside observation 2",
        statement=(
            "Smaller $\\rho$ goes with fewer errors on new samples whether decay made "
            "it smaller, at one start, or the start did, without decay."
        ),
        test=every(
            inside(rank("test_error", reading, over), above(0))
            for reading in READINGS
            for over in ("decays", "starts")
        ),
        rival="a decay or a start that betters the error and moves the norm besides",
        choices=(BOTH, HELD),
    ),
    beyond(
        name="decay-keeps-margins-apart",
        place="Beside section 1.2, figures 5 and 8",
        statement=(
            "At every decay and from every start the margins of all samples become "
            "more alike in training, and from small starts the less so, the more "
            "decay."
        ),
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


def _run(decay: float, start: float) -> dict[str, Any]:
    return {"decay": decay, "start": start, "noise": 0.0}
