"""Mixtures of interactions: taken as tables or pairs, and refused in a sentence."""

import math

import numpy as np
import pytest

from theodolite.core import ConfigError, SpinGlassBlueprint, as_mixture


def test_tables_and_pairs_are_one_mixture_in_order():
    wanted = ((2, 0.25), (4, 0.75))
    for given in (
        {4: 0.75, 2: 0.25, 3: 0},
        [(4, 0.75), (2, 0.25)],
        [[2, 0.25], [4, 0.75]],
        {np.int64(2): np.float32(0.25), 4: 0.75},
    ):
        assert as_mixture(given) == wanted
        glass = SpinGlassBlueprint(width=3, mixture=given)
        assert (glass.mixture, glass.depth, glass.units) == (wanted, 4, 2)


def test_couplings_are_one_a_monomial():
    glass = SpinGlassBlueprint(width=5, mixture={1: 0.5, 3: 0.5})
    assert glass.parameters == 5 + math.comb(7, 3)


@pytest.mark.parametrize(
    ("mixture", "words"),
    [
        ({2: 0.5, 3: 0.4}, "the mixture {2: 0.5, 3: 0.4} sums to 0.9: pass squared"),
        ({2: 1.0, 3: 1e-6}, "sums to 1.000001"),
        ({}, "sums to 0"),
        ({0: 1.0}, "order 0: pass whole numbers from 1 up"),
        ({2.5: 1.0}, "order 2.5"),
        ({True: 1.0}, "order True"),
        ({2: -0.5, 3: 1.5}, "weight -0.5 at order 2"),
        ({2: math.nan}, "weight nan at order 2"),
        ({2: "1"}, "weight '1' at order 2"),
        (3, "is no table of weights by order"),
        ([(2, 0.5), (2, 0.5)], "order 2 twice"),
    ],
)
def test_what_is_no_mixture_is_refused_in_one_sentence(mixture, words):
    with pytest.raises(ConfigError) as caught:
        SpinGlassBlueprint(width=3, mixture=mixture)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 1}, "width is 1: a sphere in fewer than 2 dimensions"),
        ({"width": 2.0}, "width is 2.0: pass a whole number"),
        ({"depth": 5}, "depth is 5, and the greatest order of the mixture is 3"),
    ],
)
def test_other_fields_are_refused_too(changes, words):
    with pytest.raises(ConfigError) as caught:
        SpinGlassBlueprint(**{"width": 3, "mixture": {3: 1.0}, **changes})
    assert words in str(caught.value)
