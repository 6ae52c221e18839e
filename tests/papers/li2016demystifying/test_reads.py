"""A test on all rows looks at both of their ends."""

import pytest

from theodolite.core import (
    PredictedAndMeasured,
    Region,
    Rows,
    measured,
    named_rows,
    near,
)
from theodolite_papers.li2016demystifying.shared.reads import always


def outcome(region, *values):
    rows = Rows(row for value in values for row in named_rows({"a": value}, 0.0))
    return always(measured("a"), region)(PredictedAndMeasured(Rows(), rows)).outcome


@pytest.mark.parametrize(
    ("values", "wanted"),
    [((2.0, 2.0), "HOLDS"), ((2.0, 3.0), "FAILS"), ((1.0, 2.0), "FAILS")],
)
def test_always_looks_at_both_ends(values, wanted):
    assert outcome(near(2, 0), *values) == wanted


def test_always_holds_up_to_an_end_that_belongs_to_the_region():
    assert outcome(Region(low=0.0, low_open=False), 0.0) == "HOLDS"
