"""How far new values are from committed ones."""

import math

import pytest

from theodolite.core import ConfigError, Rows
from theodolite.studies.chosen_cells import choose, largest_difference


def row(value, committed, error=None):
    return {"quantity": "q", "value": value, "committed": committed, "error": error}


@pytest.mark.parametrize(
    ("rows", "apart"),
    [
        ([row(2.0, 2.0), row(1.0, 0.9)], 0.1),
        ([row(0.0, 0.0)], 0.0),
        # Both are zero to rounding, and a difference beyond that is still seen.
        ([row(-5e-17, 0.0, 1e-13)], 5e-4),
        ([row(0.1, 0.0, 1e-13)], 1.0),
        ([row(20.0, 10.0, 0.7)], 0.5),
        # One of the two diverged, or both did.
        ([row(None, 1.0), row(2.0, 2.0)], math.inf),
        ([row(1.0, None), row(2.0, 2.0)], math.inf),
        ([row(None, None)], 0.0),
    ],
)
def test_differences_are_relative_to_the_value_or_its_error(rows, apart):
    assert largest_difference(Rows(rows)) == pytest.approx(apart)


def test_nothing_committed_is_nothing_to_compare():
    assert largest_difference(Rows([{"quantity": "q", "value": 1.0}])) is None


CELLS = [
    {"network": network, "depth": depth, **more}
    for network, more in (("plain", {}), ("residual", {"scale": 0.5}))
    for depth in (2, 10)
]


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ({}, [0, 1, 2, 3]),
        ({"depth": ["2"]}, [0, 2]),
        ({"depth": ["2", "10"], "network": ["plain"]}, [0, 1]),
        ({"scale": ["0.5"]}, [2, 3]),
        ({"scale": ["0.5"], "depth": ["10"]}, [3]),
    ],
)
def test_cells_are_chosen_by_all_of_their_labels(wanted, places):
    assert choose(CELLS, wanted, "s") == [CELLS[place] for place in places]


@pytest.mark.parametrize("wanted", [{"depth": ["1"]}, {"deep": ["2"]}])
def test_cells_that_are_not_there_are_named(wanted):
    ((label, (value,)),) = wanted.items()
    with pytest.raises(ConfigError, match=f"no cell of s has {label}={value}: its"):
        choose(CELLS, wanted, "s")
