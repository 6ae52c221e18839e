"""Definition 3, Eq 31 and theorem 5: reference values, domain, and the right proof."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core import ConfigError, SpinGlassBlueprint
from theodolite.theory import (
    critical_exponent,
    energy_covariance,
    exponent_gap_limit,
    exponent_of_ratio,
    exponent_slope,
    mixture_moments,
    network_mixture,
    path_weights,
)


@pytest.mark.parametrize(
    ("order", "exponent"),
    [(2, 0.0), (3, 0.013240256947), (4, 0.049306144334), (5, 0.093147180560),
     (10, 0.298612288668), (100, 1.317559925067)],
)  # fmt: skip
def test_a_single_order(order, exponent):
    assert critical_exponent({order: 1.0}) == pytest.approx(exponent, abs=1e-12)
    result = mixture_moments({order: 1.0})
    assert (result.first, result.second, result.spread) == (
        order,
        order**2 - order,
        0.0,
    )


def test_half_and_half():
    half = {2: 0.5, 3: 0.5}
    assert critical_exponent(half) == pytest.approx(0.004232583854, abs=1e-12)
    result = mixture_moments(half)
    assert (result.first, result.second, result.spread) == (2.5, 4.0, 0.25)


@pytest.mark.parametrize(
    ("beta", "exponent"),
    [(0.1, 0.3061098415), (0.5, 0.8103171152), (1, 0.9928797237),
     (2, 1.1264476941), (10, 1.2732251083)],
)  # fmt: skip
def test_figure_1f_at_depth_100(beta, exponent):
    mixture = network_mixture(path_weights(100, beta))
    assert critical_exponent(mixture) == pytest.approx(exponent, abs=1e-10)


def test_the_gap_to_a_plain_network():
    assert exponent_gap_limit(0.5) == pytest.approx(0.549306144, abs=1e-9)
    depth = 10**5
    mixture = network_mixture(path_weights(depth, 0.5))
    gap = critical_exponent({depth: 1.0}) - critical_exponent(mixture)
    assert gap == pytest.approx(0.549262, abs=1e-6)


def test_near_one_the_exponent_keeps_its_digits():
    x = 1 + np.array([1e-1, 2.02e-2, 1.9e-2, 1e-3, 1e-6])
    t = (x - 1) / (x + 1)
    series = sum(t ** (2 * j + 1) / (2 * j + 1) for j in range(1, 12))
    np.testing.assert_allclose(exponent_of_ratio(x), series, rtol=1e-10)
    assert exponent_of_ratio(1.0) == 0


@given(st.floats(1.0, 1e4))
def test_the_slope_is_the_derivative(x):
    step = 1e-5 * x
    low, high = exponent_of_ratio([x, x + 2 * step])
    assert exponent_slope(x + step) == pytest.approx(
        (high - low) / (2 * step), rel=1e-4, abs=1e-9
    )


@settings(max_examples=50)
@given(st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_no_mixture_exceeds_its_greatest_order(order, seed):
    weights = np.random.default_rng(seed).dirichlet(np.full(order - 1, 0.5))
    mixture = dict(enumerate((weights / weights.sum()).tolist(), start=2))
    ratio = mixture_moments(mixture).ratio
    shares = np.array([w * r for r, w in mixture.items()])
    assert ratio == pytest.approx(shares @ (np.arange(2, order + 1) - 1) / shares.sum())
    assert critical_exponent(mixture) <= critical_exponent({order: 1.0})


def test_covariance_and_variance():
    glass = SpinGlassBlueprint(width=7, mixture={1: 0.2, 2: 0.3, 5: 0.5})
    q = np.array([[1.0, -1.0], [0.5, 0.0]])
    wanted = 7 * (0.2 * q + 0.3 * q**2 + 0.5 * q**5)
    np.testing.assert_allclose(energy_covariance(glass, q), wanted, rtol=1e-14)


def test_paths_of_length_one_are_dropped():
    weights = path_weights(3, 0.5)
    mixture = network_mixture(weights)
    assert [order for order, _ in mixture] == [2, 3]
    assert mixture[1][1] / mixture[0][1] == pytest.approx(
        (weights[2] / weights[1]) ** 2
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: critical_exponent({1: 0.25, 3: 0.75}),
         "order 1 with weight 0.25, and the asymptotic number of critical points needs "
         "orders from 2 up: drop it"),
        (lambda: critical_exponent({2: 0.5}), "sums to 0.5"),
        (lambda: exponent_of_ratio([2.0, 0.5]), "v''/v' is 0.5"),
        (lambda: exponent_slope(0.5), "v''/v' is 0.5"),
        (lambda: exponent_gap_limit(0.0), "beta is 0.0: pass a positive number"),
        (lambda: exponent_gap_limit(math.inf), "beta holds NaN or infinity"),
        (lambda: exponent_gap_limit("half"), "beta has shape () and type"),
        (lambda: network_mixture([1.0]), "1 path weights leave nothing from length 2"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ConfigError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
