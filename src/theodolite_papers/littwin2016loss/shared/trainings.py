"""Readings of a claim on training: every training whose choices the paper leaves open.

The paper gives neither the readout's size at the start nor the learning rate nor the
number of updates, so that each of them is an axis of the experiment.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from theodolite.core import (
    Judgement,
    PredictedAndMeasured,
    ReadAs,
    Region,
    Select,
    Test,
    above,
    inside,
    mean,
    ordered,
    readings,
    steadily,
    undecided,
)

from .layerwise_config import LONG, RATES, READOUTS, SHORT

Make = Callable[[Select], Test]
OPEN = "ours: the paper gives no training"
# What no row varies.
ONE_WIDTH = ("50 units a layer, no weight decay: the paper gives neither",)
FIRST = "Section 3: weights of variance 1/fan-in; the paper gives no training"
# Labels, whether its first quarter alone is read, and a name.
TRAININGS: tuple[tuple[dict[str, Any], bool, str], ...] = (
    *(
        (
            {"horizon": SHORT, "readout": readout, "rate": rate},
            quarter,
            f"readout × {readout:g}, rate {rate:g}{', first quarter' * quarter}",
        )
        for quarter in (False, True)
        for readout in READOUTS
        for rate in RATES
    ),
    (
        {"horizon": LONG, "readout": READOUTS[0], "rate": RATES[0]},
        False,
        f"readout × {READOUTS[0]:g}, rate {RATES[0]:g}, many more updates",
    ),
)


def over_trainings(
    ways: dict[str, tuple[Select, Make]], *, quarters: bool = True
) -> Test:
    """Return a test whose readings are all ways to read a claim in all trainings.

    Args:
        ways: Rows and the test of them, by the name of the way to read the claim; the
            paper's own first.
        quarters: Read the first quarter of a training as well.
    """
    listed = []
    for way, (rows, make) in ways.items():
        for labels, quarter, name in TRAININGS:
            if quarter and not quarters:
                continue
            what = "The training's first quarter." if quarter else "The whole training."
            source = OPEN if listed else FIRST
            test = until(rows.at(**labels), make, 0.25 if quarter else 1.0)
            listed.append(ReadAs(f"{way}, {name}", what, source, test))
    return readings(*listed)


def until(rows: Select, make: Make, part: float) -> Test:
    """Return a test of the rows up to a part of the training."""

    def test(both: PredictedAndMeasured) -> Judgement:
        steps = [step for step in rows(both).levels("step") if step is not None]
        if not steps:
            return undecided(f"{rows} was not measured", missing=True)
        near = [step for step in steps if step <= part * steps[-1] * 1.01]
        end, old = near[-1], rows.test

        def early(row: Any) -> bool:
            return row["step"] <= end and (old is None or old(row))

        return make(replace(rows, test=early))(both)

    return test


def grown(rows: Select, since: float = 0.0) -> Test:
    """Judge whether means are greater at the end than after a part of the training."""

    def test(both: PredictedAndMeasured) -> Judgement:
        steps = rows(both).levels("step")
        if len(steps) < 2:
            return undecided("fewer than two steps were read", missing=not steps)
        start = min(steps, key=lambda step: abs(step - since * steps[-1]))
        return ordered(rows.at(step=start), rows.at(step=steps[-1]))(both)

    return test


def at_the_end(rows: Select) -> Test:
    """Judge whether a mean is positive at the last step."""

    def test(both: PredictedAndMeasured) -> Judgement:
        last = rows(both).levels("step")[-1]
        return inside(mean(rows.at(step=last)), above(0))(both)

    return test


def steady(by: Region) -> Make:
    """Make the test that means rise in every quarter of the training."""
    return lambda rows: steadily(rows, by=by)
