"""Claims on the square loss against cross-entropy: speed and overfitting."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    PredictedAndMeasured,
    ReadAs,
    Select,
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
    readings,
    somewhere,
    undecided,
)

from .config import FLIPPED, GIVEN, LARGE_START, OTHER_RATES

TRUE = (GIVEN, OTHER_RATES)  # labels as they are, at all rates
SAME = our_margin(0.01, "one sample of a hundred")
HALVES = Choice(
    what="when to stop is chosen on one half of the samples held out, the gain read on "
    "the other",
    why="the least of many errors is below the last by chance alone",
)


OPEN = ("decay", "start", "rate")  # settings that the paper does not give


def gain(loss: str, *labels: str, **more: Any) -> Select:
    """Select the gain of early stopping, under some kinds of labels."""
    rows = measured(
        "stopping_gain", lambda row: row["labels"] in labels, loss=loss, **more
    )
    return rows.called(f"gain by stopping early, {loss.replace('_', '-')}")


def agreeing(
    rows: Select, make: Callable[[Mapping[str, Any]], Test], by: Sequence[str] = OPEN
) -> Test:
    """Judge a test at every setting that the paper leaves open; all must agree."""

    def test(both: PredictedAndMeasured) -> Judgement:
        found = sorted({tuple(row[label] for label in by) for row in rows(both)})
        listed = [
            ReadAs(
                ", ".join(f"{k} {v:g}" for k, v in zip(by, place, strict=True)),
                "Networks trained with these settings.",
                "ours: the paper gives none",
                make(dict(zip(by, place, strict=True))),
            )
            for place in found
        ]
        if len(listed) > 1:
            return readings(*listed)(both)
        if listed:
            return listed[0].test(both)
        return undecided(f"{rows} was not measured", missing=True)

    return test


def _larger(*labels: str) -> Test:
    """Judge whether the square loss gains more by early stopping, without decay."""
    return agreeing(
        gain("cross_entropy", *labels, decay=0.0),
        lambda at: ordered(
            gain("cross_entropy", *labels, **at),
            gain("square", *labels, **at),
            name="gain of the square loss less that of cross-entropy",
        ),
    )


LOSSES = (
    Claim(
        name="square-is-good-sooner",
        place="Section 6.1",
        statement="On several classes the square loss reaches good errors on new "
        "samples sooner than cross-entropy.",
        test=agreeing(
            measured("sooner", lambda row: row["labels"] in TRUE),
            lambda at: inside(
                mean(
                    measured("sooner", lambda row: row["labels"] in TRUE, **at),
                    name="decades of epochs by which the square loss is good sooner",
                ),
                above(0),
            ),
        ),
        rival="cross-entropy that is as soon, or sooner",
        choices=(
            Choice(
                what="good is within a tenth of the least error of the worse of the "
                "two; one rate for both losses",
                why="the paper gives neither error nor rates",
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
        test=agreeing(
            gain("cross_entropy", *TRUE, decay=0.0),
            lambda at: every(
                somewhere(
                    "start",
                    gain("square", *TRUE, decay=0.0, **at),
                    lambda start: inside(
                        mean(gain("square", *TRUE, decay=0.0, start=start, **at)),
                        above(0),
                    ),
                ),
                at_each(
                    "start",
                    gain("cross_entropy", *TRUE, decay=0.0, **at),
                    lambda rows: inside(mean(rows), SAME),
                ),
            ),
            by=("rate",),
        ),
        rival="errors that go on falling, or rise for both",
        choices=(HALVES,),
    ),
    Claim(
        name="stopping-helps-square-more",
        place="Section 6.1",
        statement="Stopping early is more effective for the square loss than for "
        "cross-entropy, without decay.",
        test=_larger(*TRUE),
        rival="as much to gain for either",
        choices=(HALVES,),
    ),
    Claim(
        name="decay-keeps-from-overfitting",
        place="Section 6.1",
        statement=("With weight decay the square loss does not overfit at long times."),
        test=agreeing(
            gain("square", GIVEN),
            lambda start: at_each(
                "decay",
                gain("square", GIVEN, **start),
                lambda rows: inside(mean(rows), SAME),
                where=lambda decay: decay > 0,
            ),
            by=("start",),
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
