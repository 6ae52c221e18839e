"""Tests on some of the measured rows, which are chosen once for all their pieces."""

from collections.abc import Callable
from itertools import pairwise

from theodolite.core import (
    Judgement,
    PredictedAndMeasured,
    Rows,
    Select,
    Test,
    all_of,
    ordered,
    undecided,
)


def narrowed(keep: Callable[[Rows], Rows], test: Test) -> Test:
    """Judge a test on the measured rows that a choice keeps."""
    return lambda both: test(PredictedAndMeasured(both.predicted, keep(both.measured)))


def falling(rows: Select, over: str) -> Test:
    """From each value of a label to the next the mean over networks falls."""

    def test(both: PredictedAndMeasured) -> Judgement:
        levels = rows(both).levels(over)
        if len(levels) < 2:
            return undecided(f"{rows} has {len(levels)} values of {over}, wanted are 2")
        pieces = [
            ordered(
                rows.at(**{over: high}),
                rows.at(**{over: low}),
                paired=False,
                name=f"fall of {rows} from {over} {low} to {high}",
            )
            for low, high in pairwise(levels)
        ]
        return all_of([piece(both) for piece in pieces])

    return test
