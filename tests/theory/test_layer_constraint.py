"""The constraint on layers: factors, floors, solutions, and what is refused."""

import numpy as np
import pytest

from theodolite.core import ConfigError
from theodolite.theory import (
    TWO_CLASS_GAP,
    diagonal_solution,
    layer_factors,
    least_first_layer_gap,
    projection_gap,
)


def unit(array):
    return array / np.linalg.norm(array)


@pytest.fixture
def layers():
    rng = np.random.default_rng(2)
    return [unit(rng.normal(size=s)) for s in ((5, 3), (4, 5), (1, 4))]


def test_gaps_are_those_of_the_outer_products(layers):
    x = unit(np.array([0.5, -1.0, 0.3]))
    result = layer_factors(layers, x)
    for v, a, b, gap in zip(
        layers, result.back, result.inputs, result.gaps, strict=True
    ):
        assert a @ v @ b == pytest.approx(result.output, rel=1e-12)
        missing = np.linalg.norm(v * result.output - np.outer(a, b))
        assert gap == pytest.approx(missing / abs(result.output), rel=1e-9)


def test_a_network_that_is_off_has_no_gap_to_speak_of():
    result = layer_factors([-np.eye(1), np.eye(1)], [1.0])
    assert result.output == 0
    assert np.isinf(result.gaps).all()


def test_no_first_layer_is_below_the_floor(layers):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(20, 3))
    floor = least_first_layer_gap(x)
    directions = x / np.linalg.norm(x, axis=1, keepdims=True)
    gaps = [layer_factors(layers, one).gaps[0] for one in directions]
    assert np.sqrt(np.mean(np.square(gaps))) > floor > 0
    # The floor is met by the best direction, if outputs could be chosen freely.
    top = np.linalg.eigh(directions.T @ directions)[1][:, -1]
    open_part = 1 - (directions @ top) ** 2
    assert np.sqrt(open_part.mean()) == pytest.approx(floor, rel=1e-12)


def test_the_floor_of_two_classes_is_met():
    # V = (1, -1)/sqrt(2), features e_1 and e_2 scaled to leave the least.
    v = np.array([1.0, -1.0]) * TWO_CLASS_GAP
    for h, f in ((np.array([1.0, 0.0]), 1.0), (np.array([0.0, 1.0]), -1.0)):
        best = max(h @ v * f, 0) * h
        assert np.linalg.norm(v * f - best) == pytest.approx(TWO_CLASS_GAP)


def test_reference_values_of_orthogonal_and_projected_layers():
    # Three orthogonal matrices of width 3 and a last layer along the features.
    output = 3**-1.5
    assert projection_gap(3) * output == pytest.approx(0.272165527, abs=1e-9)
    assert projection_gap(1, 0.98) * 0.98 == pytest.approx(0.19899749, abs=1e-8)


def test_reference_values_of_a_diagonal_network():
    output, weights = diagonal_solution([0.9, 0.5, 0.3], 4)
    assert output == pytest.approx(0.1551724138, abs=1e-10)
    wanted = [0.4152273993, 0.5570860145, 0.7191949522]
    np.testing.assert_allclose(weights, wanted, atol=1e-10)


@pytest.mark.parametrize("layers", [3, 5])
def test_diagonal_solutions_meet_the_constraint(layers):
    x = np.array([0.9, -0.5, 0.3])
    output, weights = diagonal_solution(x, layers)
    assert np.linalg.norm(weights) == pytest.approx(1, rel=1e-12)
    assert (np.abs(x) * weights**layers).sum() == pytest.approx(output, rel=1e-12)
    slopes = np.abs(x) * weights ** (layers - 1)
    np.testing.assert_allclose(slopes, weights * output, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: layer_factors([np.eye(2)], [1.0, 0.0]), "no network of one output"),
        (lambda: layer_factors([], [1.0]), "no network of one output"),
        (lambda: layer_factors([[[1.0]], [[2.0]]], [1.0]), "away from 1"),
        (lambda: layer_factors([[[np.nan]]], [1.0]), "NaN"),
        (lambda: least_first_layer_gap([[0.0, 0.0], [1.0, 0.0]]), "1 of 2 inputs"),
        (lambda: least_first_layer_gap([1.0, 2.0]), r"\(samples, width\)"),
        (lambda: projection_gap(0), "rank is 0"),
        (lambda: projection_gap(1, 0.0), "cosine is 0.0"),
        (lambda: diagonal_solution([0.5, 0.0], 4), "1 zeros among 2"),
        (lambda: diagonal_solution([0.5], 2), "layers is 2"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
