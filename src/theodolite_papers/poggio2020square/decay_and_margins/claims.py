"""Claims of the paper on decay, norms, margins, and label noise without decay."""

from collections.abc import Callable
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Test,
    above,
    beyond,
    each,
    every,
    inside,
    measured,
    ordered,
)

from .claims_norms import BOTH, HELD, NORMS, READINGS, REMEMBERED, STARTS, memory
from .config import LARGE_START, PAPER_DECAY

FRESH = Choice(
    what="plus or minus a number, drawn again in every epoch; no weight decay",
    why="as in the work that the paper names; how much is small is left open, and all "
    "sizes tried count",
)


def _noisy(make: Callable[[float], Test]) -> Test:
    """Judge a test at every size of noise."""
    sizes = measured("norm", stage="end", decay=0.0)
    return each("noise", sizes, make, where=lambda noise: noise > 0)


def _at(noise: float, **labels: Any) -> dict[str, Any]:
    return {"decay": 0.0, "start": LARGE_START, "noise": noise, **labels}


def _ended(noise: float) -> dict[str, Any]:
    return _at(noise, stage="end", reading="product")


CLAIMS = (
    *NORMS,
    *STARTS,
    Claim(
        name="noise-ends-interpolation",
        place="Appendix E.1",
        statement="Label noise keeps training from interpolating.",
        test=_noisy(
            lambda noise: ordered(
                measured("train_loss", **_at(0.0)),
                measured("train_loss", **_at(noise)),
                log=True,
                name="log10 loss gained by noise",
            )
        ),
        rival="residuals as without noise",
        choices=(FRESH,),
    ),
    Claim(
        name="noise-lowers-norms-in-training",
        place="Appendix E.1 and footnote 13",
        statement="Label noise biases training towards smaller norms at the end, even "
        "from large starts, as weight decay does.",
        test=_noisy(
            lambda noise: every(
                ordered(
                    measured("norm", **_at(noise, stage="end", reading=reading)),
                    measured("norm", **_at(0.0, stage="end", reading=reading)),
                    log=True,
                    name=f"log10 norm ({reading}) lost by noise",
                )
                for reading in READINGS
            )
        ),
        rival="norms that noise leaves as they are, as it does sums of outputs",
        choices=(FRESH, BOTH),
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
                *(
                    inside(memory(reading, decay=0.0, noise=noise), REMEMBERED)
                    for reading in READINGS
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
        choices=(FRESH, BOTH),
    ),
)
