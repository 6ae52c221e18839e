"""Claims of the paper on decay, norms, margins, and label noise without decay."""

from collections.abc import Callable
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    Outcome,
    PredictedAndMeasured,
    Read,
    ReadAs,
    Select,
    Test,
    above,
    all_of,
    below,
    beyond,
    each,
    every,
    inside,
    mean,
    measured,
    ordered,
    undecided,
)

from .claims_norms import (
    FOLDED,
    HELD,
    NORM_READINGS,
    NORMS,
    REMEMBERED,
    STARTS,
    memory,
    norms,
    where_folded,
)
from .config import LARGE_START, PAPER_DECAY, SMALL_START

LAST = 1000  # epochs, by every caption
INTERPOLATED, TENTH = -2.0, "outputs within a tenth of their labels"
ENDS = (SMALL_START, LARGE_START)  # starts from which noise is tried
FRESH = Choice(
    what="plus or minus a number, drawn again in every epoch; no weight decay",
    why="as in the work that the paper names; how much is small is left open, and all "
    "sizes tried count",
)


def _noisy(make: Callable[[float], Test]) -> Test:
    """Judge a test at every size of noise."""
    sizes = measured("norm", stage="end", decay=0.0)
    return each("noise", sizes, make, where=lambda noise: noise > 0)


def _at(noise: float, start: float = LARGE_START, **labels: Any) -> dict[str, Any]:
    return {"decay": 0.0, "start": start, "noise": noise, **labels}


def _loss(noise: float, start: float) -> Read:
    """Read the logarithm of the mean squared residual of the given labels."""
    rows = measured("train_loss", **_at(noise, start)).log10()
    title = f"log10 loss of the given labels, start {start:g}, noise {noise:g}"
    return mean(rows, name=title)


def _where_fitted(make: Callable[[float], Test]) -> Test:
    """Judge a test at every start from which networks interpolate without noise."""
    fits = below(INTERPOLATED, source="ours", why=TENTH)

    def judged(both: PredictedAndMeasured) -> Judgement:
        fitted = {start: inside(_loss(0.0, start), fits)(both) for start in ENDS}
        if any(one.missing for one in fitted.values()):
            return all_of(list(fitted.values()))
        kept = [s for s, one in fitted.items() if one.outcome is Outcome.HOLDS]
        if kept:
            return all_of([make(start)(both) for start in kept])
        least = fitted[SMALL_START].because
        return undecided(f"there is no interpolation to end: {least}")

    return judged


def _lowered(rows: Select) -> Test:
    """Judge whether noise of every size lowers a norm from large starts."""
    return _noisy(
        lambda noise: ordered(
            rows.at(**_at(noise)),
            rows.at(**_at(0.0)),
            log=True,
            name="log10 norm lost by noise",
        )
    )


def _ended(noise: float) -> dict[str, Any]:
    return _at(noise, stage="end", reading="product")


CLAIMS = (
    *NORMS,
    *STARTS,
    Claim(
        name="noise-ends-interpolation",
        place="Appendix E.1",
        statement="Label noise keeps training from interpolating.",
        test=_where_fitted(
            lambda start: _noisy(
                lambda noise: inside(
                    _loss(noise, start), above(INTERPOLATED, source="ours", why=TENTH)
                )
            )
        ),
        rival="networks that average the noise away and fit the given labels",
        choices=(
            FRESH,
            Choice(
                what="from each start from which outputs come within a tenth of the "
                "given labels without noise, they do not with it",
                why="the words are by eliminating interpolation, and nearly any noise "
                "makes the fit worse",
            ),
        ),
    ),
    Claim(
        name="noise-lowers-norms-in-training",
        place="Appendix E.1 and footnote 13",
        statement="Label noise biases training towards smaller norms at the end, even "
        "from large starts, as weight decay does.",
        test=where_folded(
            (
                ReadAs(*told, _lowered(measured("norm", stage="end", reading=norm)))
                for norm, told in NORM_READINGS.items()
            ),
            [
                ReadAs(
                    *FOLDED, _lowered(measured("norm_at", reading="folded", epoch=LAST))
                )
            ],
        ),
        rival="norms that noise leaves as they are, as it does sums of outputs",
        choices=(FRESH,),
    ),
    beyond(
        name="noise-raises-the-sum",
        place="Beside footnote 13",
        statement="In training without decay, label noise makes $\\sum_n y_n f_n$ "
        "larger and not smaller, with the norm of the last layer as $\\rho$: it is the "
        "number of samples times the mean margin.",
        test=_noisy(
            lambda noise: ordered(
                measured("mean_margin", **_at(0.0, reading="last")),
                measured("mean_margin", **_at(noise, reading="last")),
                log=True,
                name="log10 mean margin gained by noise",
            )
        ),
        rival="a sum that noise makes smaller",
        choices=(FRESH,),
    ),
    Claim(
        name="noise-betters-errors",
        place="Appendix E.1",
        statement="Label noise makes for better generalisation, even from large "
        "starts.",
        test=_noisy(
            lambda noise: ordered(
                measured("test_error", **_at(noise)),
                measured("test_error", **_at(0.0)),
                name="errors on new samples lost by noise",
            )
        ),
        rival="errors that noise leaves or worsens",
        choices=(FRESH, HELD),
    ),
    beyond(
        name="noise-does-not-forget",
        place="Beside appendix E.1",
        statement="Unlike decay, label noise of any size tried leaves the end "
        "dependent on the start, and the norm at least ten times that of a decay of "
        f"{PAPER_DECAY}.",
        test=_noisy(
            lambda noise: every(
                norms(
                    lambda norm: inside(
                        memory(norm, decay=0.0, noise=noise), REMEMBERED
                    )
                ),
                ordered(
                    measured("norm", **{**_ended(0.0), "decay": PAPER_DECAY}),
                    measured("norm", **_ended(noise)),
                    log=True,
                    by=above(1, source="ours", why="ten times"),
                    name="log10 norm with noise less that with decay",
                ),
            )
        ),
        rival="noise that forgets the start as decay does",
        choices=(FRESH,),
    ),
)
