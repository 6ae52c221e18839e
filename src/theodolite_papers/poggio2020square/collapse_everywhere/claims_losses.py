"""Claims on the square loss against cross-entropy: speed and overfitting."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    PredictedAndMeasured,
    ReadAs,
    Region,
    Rows,
    Select,
    Test,
    above,
    all_of,
    any_of,
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
# An error that falls to the end is no overfitting, so that the margin has one end.
NO_GAIN = below(SAME.high, source="ours", why=SAME.why)
DECAY = 0.01  # of the captions
ONE_DECAY = ("a decay of 0.01 at one rate is all that both losses were trained with",)


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


def _settings(*labels: str, **more: Any) -> Callable[[PredictedAndMeasured], list]:
    """Return a function that lists the starts and rates of cross-entropy."""

    def read(both: PredictedAndMeasured) -> list[dict[str, Any]]:
        rows = gain("cross_entropy", *labels, **more)(both)
        found = sorted({(row["start"], row["rate"]) for row in rows})
        return [{"start": start, "rate": rate, **more} for start, rate in found]

    return read


def _overfits(loss: str, at: Mapping[str, Any]) -> Test:
    return inside(mean(gain(loss, *TRUE, **at)), above(0))


def _does_not(loss: str, at: Mapping[str, Any]) -> Test:
    return inside(mean(gain(loss, *TRUE, **at)), NO_GAIN)


def _sometimes(both: PredictedAndMeasured) -> Judgement:
    """Judge whether the square loss overfits somewhere, cross-entropy nowhere."""
    settings = _settings(*TRUE, decay=0.0)(both)
    if not settings:
        return undecided("no early stopping was measured", missing=True)
    nowhere = all_of([_does_not("cross_entropy", at)(both) for at in settings])
    return all_of([any_of([_overfits("square", at)(both) for at in settings]), nowhere])


def _at_one(both: PredictedAndMeasured) -> Judgement:
    """Judge whether at some setting the one overfits and the other does not."""
    pairs = [
        all_of([_overfits("square", at)(both), _does_not("cross_entropy", at)(both)])
        for at in _settings(*TRUE, decay=0.0)(both)
    ]
    if not pairs:
        return undecided("no early stopping was measured", missing=True)
    return any_of(pairs)


def _effective(rows: Rows) -> Rows:
    """Return 1 for runs that early stopping betters by more than a sample, else 0.

    The error is one run more or less, so that no share is exact.
    """
    return Rows(
        row
        if row["value"] is None
        else {**row, "value": float(row["value"] > SAME.high), "error": 1 / len(rows)}
        for row in rows
    )


def _square_less_cross_entropy(share_in: Region, gain_in: Region, **at: Any) -> Test:
    """Judge how much likelier runs overfit, and by how much more on average."""

    def share(loss: str) -> Select:
        rows = gain(loss, *TRUE, **at).keeping(_effective)
        return rows.called(f"share of runs that overfit, {loss.replace('_', '-')}")

    return readings(
        ReadAs(
            "share of runs",
            "Likely is the share of all runs that stopping early betters by more than "
            "one sample of a hundred.",
            "section 6.1: more likely",
            ordered(share("cross_entropy"), share("square"), by=share_in),
        ),
        ReadAs(
            "mean gain",
            "Likely is the mean gain by stopping early, over all runs.",
            "ours",
            ordered(
                gain("cross_entropy", *TRUE, **at),
                gain("square", *TRUE, **at),
                by=gain_in,
            ),
        ),
    )


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
        statement="It seems that on several classes the square loss reaches good "
        "errors on new samples sooner than cross-entropy.",
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
        departures=("not each loss at its own best rate",),
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
        statement="Without decay, going on sometime yields overfitting for the square "
        "loss but not for cross-entropy.",
        test=readings(
            ReadAs(
                "cross-entropy nowhere",
                "The square loss at some start and rate, cross-entropy at none.",
                "section 6.1: sometime … but not",
                _sometimes,
            ),
            ReadAs(
                "at the same setting",
                "At some start and rate the square loss, and cross-entropy not there.",
                "ours: but not may be of the same networks",
                _at_one,
            ),
        ),
        rival="errors that go on falling, or rise for both",
        choices=(HALVES,),
    ),
    Claim(
        name="stopping-helps-square-more",
        place="Section 6.1",
        statement="Without decay, early stopping is more likely to be effective for "
        "the square loss than for cross-entropy.",
        test=_square_less_cross_entropy(above(0), above(0), decay=0.0),
        rival="as much to gain for either",
        choices=(HALVES,),
    ),
    Claim(
        name="decay-keeps-from-overfitting",
        place="Section 6.1",
        statement="With weight decay the square loss is not more likely to overfit at "
        "long times than cross-entropy.",
        test=_square_less_cross_entropy(
            below(0.1, source="ours", why="a tenth of the runs"), NO_GAIN, decay=DECAY
        ),
        rival="errors that rise at long times all the same",
        choices=(HALVES,),
        departures=ONE_DECAY,
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
