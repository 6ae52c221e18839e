"""Tests that several studies share: of every row, of chosen rows, and of a decrease."""

from collections.abc import Callable
from itertools import pairwise

from theodolite.core import (
    Judgement,
    PredictedAndMeasured,
    Region,
    Rows,
    Select,
    Test,
    all_of,
    every,
    highest,
    inside,
    lowest,
    ordered,
    undecided,
)


def always(rows: Select, region: Region) -> Test:
    """Judge whether every row lies in a region, its error included."""
    return every(inside(highest(rows), region), inside(lowest(rows), region))


def narrowed(keep: Callable[[Rows], Rows], test: Test) -> Test:
    """Return a test of only the measured rows that ``keep`` keeps."""
    return lambda both: test(PredictedAndMeasured(both.predicted, keep(both.measured)))


def falling(rows: Select, over: str) -> Test:
    """Judge whether the mean falls from each value of a label to the next."""

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
