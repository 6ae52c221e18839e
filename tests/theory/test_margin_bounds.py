"""Margins and bounds: reference values, rivals, and what is refused."""

import itertools

import numpy as np
import pytest

from theodolite.core import ConfigError
from theodolite.theory import (
    frobenius_complexity,
    least_norm_classifier,
    margin_bound,
    two_layer_complexity,
)


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_complexity_is_that_of_a_fine_grid_and_below_its_bound(seed):
    x = np.random.default_rng(seed).normal(size=(6, 2))
    turns = np.linspace(0, 2 * np.pi, 20_001)
    units = np.maximum(x @ np.stack([np.cos(turns), np.sin(turns)]), 0)
    signs = itertools.product((-1.0, 1.0), repeat=6)
    grid = np.mean([np.abs(np.array(s) @ units).max() for s in signs]) / 6
    exact = two_layer_complexity(x)
    assert exact == pytest.approx(grid, rel=1e-5)
    assert exact >= grid
    assert exact < frobenius_complexity(x, 2)


def test_complexity_is_proportional_to_the_inputs():
    x = np.random.default_rng(4).normal(size=(5, 2))
    for complexity in (two_layer_complexity, lambda z: frobenius_complexity(z, 3)):
        assert complexity(3 * x) == pytest.approx(3 * complexity(x), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_shortest_classifier_meets_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(6, 8)), rng.choice([-1.0, 1.0], 6)
    w = least_norm_classifier(x, y)
    margins = y * (x @ w)
    assert margins.min() == pytest.approx(1, rel=1e-9)
    support = margins < 1 + 1e-9
    # w is a non-negative combination of the points that it touches.
    shares = np.linalg.lstsq((y[:, None] * x)[support].T, w, rcond=None)[0]
    np.testing.assert_allclose((y[:, None] * x)[support].T @ shares, w, atol=1e-9)
    assert shares.min() > -1e-9


def test_the_bound_adds_its_three_terms():
    rest = 3 * np.sqrt(np.log(2 / 0.1) / 100)
    result = margin_bound(0.2, 0.3, gamma=0.5, samples=50, delta=0.1)
    assert result == pytest.approx(0.2 + 1.2 + rest, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: margin_bound(0.0, 1.0, gamma=0.0, samples=5, delta=0.5), "gamma 0.0"),
        (lambda: two_layer_complexity(np.ones((17, 2))), "2\\*\\*17 signs"),
        (lambda: two_layer_complexity(np.ones((3, 3))), r"\(samples, 2\)"),
        (lambda: frobenius_complexity([[1.0]], 0), "layers is 0"),
        (
            lambda: margin_bound(0.0, 1.0, gamma=1.0, samples=5, delta=1.0),
            "delta is 1.0",
        ),
        (lambda: least_norm_classifier([[1.0], [1.0]], [1, -1]), "not separated"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
