"""What several studies share: tests on all rows, and the data of appendix B."""

import numpy as np
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
from theodolite_papers.li2016demystifying.shared.whitened import few, whitened


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


@pytest.mark.parametrize("name", ["digits", "mnist5k"])
def test_ten_components_are_centred_and_white_and_labels_one_hot(name):
    x, y = whitened(name, 10)
    assert x.shape[1] == y.shape[1] == 10
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(10), atol=1e-12)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    assert set(np.unique(y)) == {0, 1}
    np.testing.assert_array_equal(y.sum(axis=1), 1)


def test_few_samples_have_the_second_moments_of_all():
    for whole, part in zip(
        _moments(*whitened("digits", 10)), _moments(*few("digits", 10)), strict=True
    ):
        np.testing.assert_allclose(part, whole, atol=1e-12)


def _moments(x, y):
    return [a.T @ b / len(x) for a, b in ((x, x), (y, x), (y, y))]
