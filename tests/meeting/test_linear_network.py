"""Loss, gradient and Hessian from moments against autograd, at any weights."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.meeting.problems import assert_agree, assert_differ, measured, problems
from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.instruments import HalfSquareLoss, hessian
from theodolite.networks import build, get_weights
from theodolite.theory import (
    hessian_at_zero,
    linear_gradient,
    linear_hessian,
    linear_loss,
    moments,
)

LINEAR = problems([1, 2, 3], linear=True)
INITS = st.sampled_from(["xavier", "orthogonal", "small"])


@settings(max_examples=25)
@given(LINEAR, INITS, st.booleans(), st.integers(0, 99))
def test_moments_agree_with_autograd(problem, init, skip, seed):
    plan, x, y = problem
    plan = plan.with_(init=init, skip=skip)
    network = build(plan, seed=seed)
    weights, data = get_weights(network), moments(x, y)
    batch = (torch.as_tensor(x), torch.as_tensor(y))
    reading = hessian(network, batch, loss=HalfSquareLoss(), norm_mode="eval")
    np.testing.assert_allclose(
        linear_loss(plan, weights, data), reading.loss, rtol=1e-12
    )
    gradient = linear_gradient(plan, weights, data).ravel()
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(
        gradient, reading.gradient, rtol=1e-10, atol=1e-12 * scale
    )
    assert_agree(linear_hessian(plan, weights, data), measured(network, x, y))


@pytest.mark.parametrize("init", ["xavier", "orthogonal"])
@pytest.mark.parametrize("shortcut", [1, 2])
def test_moments_agree_with_autograd_at_depth_eight(init, shortcut):
    plan = ShortcutBlueprint(width=3, depth=8, shortcut=shortcut, init=init)
    x, y = np.random.default_rng(0).normal(size=(2, 12, 3))
    network = build(plan, seed=0)
    theory = linear_hessian(plan, get_weights(network), moments(x, y))
    assert_agree(theory, measured(network, x, y))


@settings(max_examples=15)
@given(LINEAR, st.integers(0, 99))
def test_rejects_the_skip_of_another_network_and_transposed_labels(problem, seed):
    plan, x, y = problem
    plan = plan.with_(init="xavier", depth=4 * plan.shortcut)
    network = build(plan, seed=seed)
    weights, data = get_weights(network), moments(x, y)
    measurement = measured(network, x, y)
    assert_differ(linear_hessian(plan.with_(skip=False), weights, data), measurement)
    flipped = type(data)(data.xx, data.yx.T, data.yy)
    assert_differ(linear_hessian(plan, weights, flipped), measurement)
    assert_differ(linear_hessian(plan, weights[::-1], data), measurement)


@given(LINEAR)
def test_at_zero_the_two_closed_forms_agree(problem):
    plan, x, y = problem
    weights = np.zeros((plan.depth, plan.width, plan.width))
    assert_agree(
        linear_hessian(plan, weights, moments(x, y)), hessian_at_zero(plan, x, y)
    )


def test_optimal_loss_is_reached_by_least_squares():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30, 4))
    solution = np.linalg.lstsq(x, y, rcond=None)[0]
    best = 0.5 * np.mean(np.sum((x @ solution - y) ** 2, axis=1))
    assert moments(x, y).optimal_loss() == pytest.approx(best, rel=1e-12)
    # Also where inputs do not span the space.
    flat = np.c_[x[:, :3], x[:, 0]]
    solution = np.linalg.lstsq(flat, y, rcond=None)[0]
    best = 0.5 * np.mean(np.sum((flat @ solution - y) ** 2, axis=1))
    assert moments(flat, y).optimal_loss() == pytest.approx(best, rel=1e-10)


def test_nonlinear_networks_and_wrong_shapes_are_refused():
    data = moments(np.eye(2), np.eye(2))
    with pytest.raises(ConfigError, match=r"instruments\.hessian"):
        linear_loss(
            ShortcutBlueprint(width=2, depth=2, mid="relu"), np.zeros((2, 2, 2)), data
        )
    with pytest.raises(ConfigError, match="shape"):
        linear_loss(ShortcutBlueprint(width=2, depth=2), np.zeros((4, 2, 2)), data)
    with pytest.raises(ConfigError, match="NaN"):
        moments(np.full((2, 2), np.nan), np.eye(2))
    with pytest.raises(ConfigError, match="equal shape"):
        moments(np.eye(2), np.eye(3))
