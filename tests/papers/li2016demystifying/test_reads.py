"""Signed extremes of rows keep their signs and cover every row's error."""

import math

import pytest

from theodolite.core import (
    PredictedAndMeasured,
    Region,
    Rows,
    above,
    below,
    highest,
    inside,
    lowest,
    measured,
    near,
)
from theodolite_papers.li2016demystifying.shared.reads import always


def both(*pairs):
    rows = [{"quantity": "a", "value": v, "error": e} for v, e in pairs]
    return PredictedAndMeasured(Rows(), Rows(rows))


A = measured("a")


def test_extremes_are_signed_where_largest_is_a_magnitude():
    found = both((-3.0, 0.1), (1.0, 0.1))
    assert highest(A)(found).value == 1.0
    assert lowest(A)(found).value == -3.0


def test_a_vague_row_behind_the_extreme_counts():
    found = both((-1.0, 0.0), (-2.0, 5.0))
    assert highest(A)(found).upper(0.05) == 3.0
    assert inside(highest(A), below(0))(found).outcome == "UNDECIDED"
    found = both((1.0, 0.0), (2.0, 5.0))
    assert lowest(A)(found).lower(0.05) == -3.0
    assert inside(lowest(A), above(0))(found).outcome == "UNDECIDED"


@pytest.mark.parametrize("error", [None, math.nan, math.inf])
def test_an_unknown_error_decides_nothing(error):
    assert inside(highest(A), below(0))(both((-1.0, error))).outcome == "UNDECIDED"


def test_no_rows_decide_nothing():
    assert inside(highest(A), below(0))(both()).outcome == "UNDECIDED"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [((2.0, 2.0), "HOLDS"), ((2.0, 3.0), "FAILS"), ((1.0, 2.0), "FAILS")],
)
def test_always_looks_at_both_ends(values, outcome):
    found = both(*((v, 0.0) for v in values))
    assert always(A, near(2, 0))(found).outcome == outcome


def test_always_holds_up_to_an_end_that_belongs_to_the_region():
    assert always(A, Region(low=0.0, low_open=False))(both((0, 0))).outcome == "HOLDS"
