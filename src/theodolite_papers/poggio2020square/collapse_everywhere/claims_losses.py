"""Claims on the square loss against cross-entropy: speed and overfitting."""

from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Test,
    above,
    at_each,
    below,
    beyond,
    every,
    inside,
    mean,
    measured,
    ordered,
    our_margin,
    somewhere,
)

from .config import FLIPPED, GIVEN, LARGE_START

SAME = our_margin(0.01, "one sample of a hundred")
HALVES = Choice(
    what="when to stop is chosen on one half of the samples held out, the gain read on "
    "the other",
    why="the least of many errors is below the last by chance alone",
)


def gain(loss: str, labels: str, **more: Any) -> Any:
    """Select the gain of early stopping."""
    return measured("stopping_gain", loss=loss, labels=labels, **more).called(
        f"gain by stopping early, {loss.replace('_', '-')}, {labels} labels"
    )


def _larger(labels: str) -> Test:
    """Judge whether the square loss gains more by early stopping, without decay."""
    return ordered(
        gain("cross_entropy", labels, decay=0.0),
        gain("square", labels, decay=0.0),
        name=f"gain of the square loss less that of cross-entropy, {labels} labels",
    )


LOSSES = (
    Claim(
        name="square-is-good-sooner",
        place="Section 6.1",
        statement="On several classes the square loss reaches good errors on new "
        "samples sooner than cross-entropy.",
        test=inside(
            mean(
                measured("sooner", labels=GIVEN),
                name="decades of epochs by which the square loss is good sooner",
            ),
            above(0),
        ),
        rival="cross-entropy that is as soon, or sooner",
        choices=(
            Choice(
                what="good is within a tenth of the least error of the worse of the "
                "two; one rate for both losses; all starts and decays together",
                why="the paper gives neither error, rates nor starts",
            ),
        ),
    ),
    beyond(
        name="who-is-sooner-depends-on-the-start",
        place="Beside section 6.1",
        statement="Without decay and from large starts cross-entropy reaches good "
        "errors sooner than the square loss.",
        test=inside(
            mean(
                measured("sooner", labels=GIVEN, decay=0.0, start=LARGE_START),
                name="decades of epochs by which the square loss is good sooner, "
                "large start",
            ),
            below(0),
        ),
        rival="a square loss that is sooner wherever training starts",
    ),
    Claim(
        name="square-overfits-late",
        place="Section 6.1",
        statement="Without decay, going on worsens errors on new samples sometimes for "
        "the square loss and not for cross-entropy.",
        test=every(
            somewhere(
                "start",
                gain("square", GIVEN, decay=0.0),
                lambda start: inside(
                    mean(gain("square", GIVEN, decay=0.0, start=start)), above(0)
                ),
            ),
            at_each(
                "start",
                gain("cross_entropy", GIVEN, decay=0.0),
                lambda rows: inside(mean(rows), SAME),
            ),
        ),
        rival="errors that go on falling, or rise for both",
        choices=(HALVES,),
    ),
    Claim(
        name="stopping-helps-square-more",
        place="Section 6.1",
        statement="Stopping early is more effective for the square loss than for "
        "cross-entropy, without decay.",
        test=_larger(GIVEN),
        rival="as much to gain for either",
        choices=(HALVES,),
    ),
    Claim(
        name="decay-keeps-from-overfitting",
        place="Section 6.1",
        statement=("With weight decay the square loss does not overfit at long times."),
        test=at_each(
            "decay",
            gain("square", GIVEN),
            lambda rows: inside(mean(rows), SAME),
            where=lambda decay: decay > 0,
        ),
        rival="errors that rise at long times all the same",
        choices=(HALVES,),
    ),
    beyond(
        name="wrong-labels-overfit-both",
        place="Beside section 6.1",
        statement="Where a fifth of the labels is wrong both losses overfit at long "
        "times without decay.",
        test=every(
            inside(mean(gain(loss, FLIPPED, decay=0.0)), above(0))
            for loss in ("square", "cross_entropy")
        ),
        rival="cross-entropy that does not overfit",
        choices=(HALVES,),
    ),
    beyond(
        name="wrong-labels-harm-square-more",
        place="Beside section 6.1",
        statement="Where a fifth of the labels is wrong, stopping early gains more for "
        "the square loss than for cross-entropy, without decay.",
        test=_larger(FLIPPED),
        rival="as much to gain for either",
        choices=(HALVES,),
    ),
    beyond(
        name="decay-does-not-mend-labels",
        place="Beside section 6.1",
        statement="Where a fifth of the labels is wrong the square loss overfits at "
        "long times with weight decay too.",
        test=at_each(
            "decay",
            gain("square", FLIPPED),
            lambda rows: inside(mean(rows), above(0)),
            where=lambda decay: decay > 0,
        ),
        rival="decay that keeps from overfitting whatever the labels",
        choices=(HALVES,),
    ),
)
