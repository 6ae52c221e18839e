"""The quadratic model's loss, against descent on the model step by step."""

import numpy as np
import pytest
from torch.testing import assert_close

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.networks import initial_weights
from theodolite.theory import linear_gradient, linear_loss, moments
from theodolite.theory.flows.quadratic_descent import gradient_spectrum
from theodolite.theory.linear.relu_network import relu_gradient


def stepwise(hessian, gradient, rate, steps):
    w = np.zeros(len(gradient))
    for _ in range(steps):
        w = w - rate * (gradient + hessian @ w)
    return gradient @ w + w @ hessian @ w / 2


def matrix(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n)) / np.sqrt(2 * n)
    return a + a.T + shift * np.eye(n), rng.normal(size=n)


@pytest.mark.parametrize("n", [5, 60, 400])
@pytest.mark.parametrize("rate", [0.01, 0.3, 1.2])
def test_the_change_is_that_of_descent_on_the_model(n, rate):
    hessian, gradient = matrix(n, seed=n)
    result = gradient_spectrum(hessian, gradient)
    for steps in (1, 7, 40):
        truth = stepwise(hessian, gradient, rate, steps)
        assert_close(result.change(rate, steps), truth, rtol=1e-8, atol=0)
    assert_close(
        result.largest, float(np.linalg.eigvalsh(hessian)[-1]), rtol=1e-6, atol=0
    )


def test_a_flat_direction_falls_by_rate_times_steps():
    result = gradient_spectrum(np.zeros((3, 3)), np.array([3.0, 0.0, 4.0]))
    assert_close(result.change(0.1, 50), -0.1 * 50 * 25, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("values", "gradient", "sign"),
    [((1.0, 50.0), (1.0, 1.0), 1), ((-1.0, 100.0), (1.0, 0.03), 1),
     ((-1.0, 100.0), (0.03, 1.0), 1), ((-100.0, 50.0), (1e-6, 1.0), -1),
     ((-1.0, 100.0), (1.0, 0.0), -1)],
)  # fmt: skip
@pytest.mark.parametrize("steps", [500, 1000, 10_000])
def test_overflow_has_the_sign_of_the_fastest_direction(values, gradient, sign, steps):
    """At rate 1 a direction grows by (1 - λ)² a step."""
    result = gradient_spectrum(np.diag(values), np.array(gradient))
    assert sign * result.change(1.0, steps) > 1e200


def test_a_huge_growth_of_a_tiny_component_is_within_range():
    steps = 170
    result = gradient_spectrum(np.diag([50.0, 0.5]), np.array([1e-150, 1.0]))
    wanted = np.exp(2 * steps * np.log(49.0) + 2 * np.log(1e-150)) / 100 - 1
    assert_close(result.change(1.0, steps), wanted, rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    ("rate", "steps"), [(0.0, 1), (-0.1, 1), (np.nan, 1), (0.1, -1)]
)
def test_rates_and_steps_are_checked(rate, steps):
    result = gradient_spectrum(np.eye(2), np.ones(2))
    with pytest.raises(ConfigError, match="pass a positive rate"):
        result.change(rate, steps)


def test_what_is_not_finite_is_refused():
    with pytest.raises(ConfigError, match=r"hessian holds NaN .* 4 of 4"):
        gradient_spectrum(np.full((2, 2), np.nan), np.ones(2))
    with pytest.raises(ConfigError, match="gradient holds NaN or infinity in 1 of 2"):
        gradient_spectrum(np.eye(2), np.array([1.0, np.inf]))


def test_a_gradient_of_zero_changes_nothing():
    hessian, _ = matrix(300, seed=1)
    assert gradient_spectrum(hessian, np.zeros(300)).change(0.1, 100) == 0


def test_shapes_that_differ_are_a_sentence():
    with pytest.raises(ConfigError, match="same weights"):
        gradient_spectrum(np.eye(3), np.ones(2))


@pytest.mark.parametrize("shortcut", [1, 2, 3])
@pytest.mark.parametrize("skip", [True, False])
def test_without_gates_the_gradient_is_that_from_moments(shortcut, skip):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30, 4))
    plan = ShortcutBlueprint(
        width=4, depth=6, shortcut=shortcut, skip=skip, init="xavier"
    )
    weights = initial_weights(plan, seed=1)
    loss, gradient = relu_gradient(plan, weights, x, y)
    result = moments(x, y)
    assert_close(loss, linear_loss(plan, weights, result), rtol=1e-12, atol=0)
    assert_close(
        gradient, linear_gradient(plan, weights, result), rtol=1e-10, atol=1e-12
    )


def test_a_gradient_it_does_not_know_is_a_sentence():
    plan = ShortcutBlueprint(width=2, depth=2, mid="tanh")
    with pytest.raises(ConfigError, match="instruments"):
        relu_gradient(plan, np.zeros((2, 2, 2)), np.ones((1, 2)), np.ones((1, 2)))
