"""Closed form of the Hessian at zero against the measured one.

Each meeting rejects a rival: the wrong transpose, the wrong shortcut length, a
missing commutation matrix, the printed formula where it is not general enough.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.meeting.problems import (
    assert_agree,
    assert_differ,
    at_zero,
    measured,
    problems,
)
from theodolite.core import ConfigError, ShortcutBlueprint, condition_of, index_of
from theodolite.instruments import HalfSquareLoss, hessian
from theodolite.networks import build, set_weights
from theodolite.theory import (
    activation,
    commutation,
    conditioning_at_zero,
    data_matrix,
    eigenvalues_at_zero,
    hessian_at_zero,
    moments,
    relu_spectrum_near_zero,
    unit_blocks,
)


@settings(max_examples=30)
@given(problems([1, 2, 3, 4]))
def test_closed_form_equals_measurement(problem):
    plan, x, y = problem
    measurement = at_zero(plan, x, y)
    assert_agree(hessian_at_zero(plan, x, y), measurement)
    assert plan.parameters == len(measurement)


@settings(max_examples=20)
@given(problems([2]))
def test_two_shortcut_rejects_wrong_transpose_and_missing_commutation(problem):
    plan, x, y = problem
    plan = plan.with_(bias=False)
    d = plan.width
    unit = at_zero(plan, x, y)[: 2 * d * d, : 2 * d * d]
    block = unit[d * d :, : d * d]
    data = data_matrix(plan, x, y)
    assert_agree(np.kron(np.eye(d), data) @ commutation(d), block)
    if np.abs(data).max() < 1e-6:
        return
    assert_differ(np.kron(np.eye(d), data), block)
    if np.abs(data - data.T).max() > 0.1 * np.abs(data).max():
        assert_differ(np.kron(np.eye(d), data.T) @ commutation(d), block)


@settings(max_examples=20)
@given(problems([1]))
def test_one_shortcut_rejects_wrong_transpose_and_missing_commutation(problem):
    plan, x, y = problem
    plan = plan.with_(depth=2, pre="identity", post="identity")
    d = plan.width
    block = at_zero(plan, x, y)[d * d :, : d * d]
    gap, common = moments(x, y).gap, np.kron(moments(x, y).xx, np.eye(d))
    eye, k = np.eye(d), commutation(d)
    assert_agree(common + np.kron(eye, gap) @ k, block)
    assert_differ(common + np.kron(eye, gap), block)
    if np.abs(gap - gap.T).max() > 0.1 * np.abs(gap).max():
        assert_differ(common + np.kron(eye, gap.T) @ k, block)
        # Putting the block above the diagonal instead of below it.
        assert_differ(block.T, block)


@given(problems([1, 2, 3]), st.sampled_from([1, 2, 3]))
def test_rejects_the_wrong_shortcut_length(problem, other):
    plan, x, y = problem
    rival = plan.with_(shortcut=other, depth=6, bias=False)
    plan = plan.with_(depth=6, bias=False)
    if other == plan.shortcut:
        return
    measurement = at_zero(plan, x, y)
    assert_agree(hessian_at_zero(plan, x, y), measurement)
    scale = max(np.abs(hessian_at_zero(p, x, y)).max() for p in (plan, rival))
    assert np.abs(hessian_at_zero(rival, x, y) - measurement).max() > 1e-3 * scale


def test_printed_one_shortcut_blocks_are_not_general():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 9, 3))
    plan = ShortcutBlueprint(
        width=3, depth=2, shortcut=1, pre="exp", post="polynomial:2,1"
    )
    a, b = unit_blocks(plan, x, y)
    measurement = at_zero(plan, x, y)
    assert_agree(a, measurement[9:, :9])
    assert_agree(b, measurement[:9, :9])
    printed_b = np.kron(moments(x, y).xx, np.eye(3))
    printed_a = printed_b + np.kron(np.eye(3), moments(x, y).gap) @ commutation(3)
    assert_differ(printed_b, measurement[:9, :9], by=0.1)
    assert_differ(printed_a, measurement[9:, :9], by=0.1)


@settings(max_examples=20)
@given(problems([2, 3]))
def test_spectrum_without_the_matrix(problem):
    plan, x, y = problem
    exact = np.linalg.eigvalsh(at_zero(plan, x, y))
    scale = max(np.abs(exact).max(), 1e-300)
    result = eigenvalues_at_zero(plan, x, y)
    np.testing.assert_allclose(result, exact, atol=1e-12 * scale)


@settings(max_examples=25)
@given(problems([1]), st.sampled_from([0.0, 0.1, 0.37]), st.integers(1, 9))
def test_one_shortcut_conditioning_without_the_matrix(problem, quantile, units):
    plan, x, y = problem
    plan = plan.with_(depth=units)
    exact = np.linalg.eigvalsh(hessian_at_zero(plan, x, y))
    result = conditioning_at_zero(plan, x, y, quantile=quantile)
    wanted = condition_of(exact, quantile=quantile)
    scale = wanted.largest
    assert result.largest == pytest.approx(scale, rel=1e-11)
    assert result.small == pytest.approx(wanted.small, rel=1e-9, abs=1e-12 * scale)
    unsure = np.mean(np.abs(exact) < 1e-12 * scale)
    assert abs(result.index - index_of(exact)) <= unsure


@given(problems([2]), st.integers(1, 40))
def test_two_shortcut_conditioning_is_the_same_at_every_depth(problem, units):
    plan, x, y = problem
    one = conditioning_at_zero(plan.with_(depth=2), x, y, quantile=0.0)
    many = conditioning_at_zero(plan.with_(depth=2 * units), x, y, quantile=0.0)
    assert many.largest == one.largest
    assert many.small == one.small


@pytest.mark.parametrize("units", [1, 2, 5])
def test_degenerate_data_have_a_spectrum_too(units):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 9, 3))
    flat = x * [1.0, 1.0, 0.0]
    for inputs, targets in ((x, x), (flat, y * [1.0, 1.0, 0.0]), (0 * x, 0 * x)):
        plan = ShortcutBlueprint(width=3, depth=units, shortcut=1)
        exact = np.linalg.eigvalsh(hessian_at_zero(plan, inputs, targets))
        result = conditioning_at_zero(plan, inputs, targets, quantile=0.1)
        scale = max(np.abs(exact).max(), 1e-300)
        assert result.largest == pytest.approx(scale, rel=1e-9, abs=1e-290)
        wanted = np.quantile(np.abs(exact), 0.1)
        assert result.small == pytest.approx(wanted, rel=1e-9, abs=1e-13 * scale)


def test_reference_values(tiny):
    x, y = tiny
    batch = (torch.as_tensor(x), torch.as_tensor(y))
    plain = build(ShortcutBlueprint(width=2, depth=2, init="zero"), seed=0)
    reading = hessian(plain, batch, loss=HalfSquareLoss(), norm_mode="eval")
    assert reading.loss == pytest.approx(0.875, abs=1e-15)
    single = [1.5074809355, 0.1105597177]
    for depth in (2, 4, 10):
        plan = ShortcutBlueprint(width=2, depth=depth)
        result = eigenvalues_at_zero(plan, x, y)
        wanted = np.sort(np.repeat([*single, *(-s for s in single)], depth))
        np.testing.assert_allclose(result, wanted, atol=1e-10)
        cond = conditioning_at_zero(plan, x, y, quantile=0.0)
        assert cond.ratio == pytest.approx(13.6349926263, abs=1e-9)
    one = ShortcutBlueprint(width=2, depth=1, shortcut=1)
    np.testing.assert_allclose(
        eigenvalues_at_zero(one, x, y),
        [0.2572739825, 0.2572739825, 2.1593926842, 2.1593926842],
        atol=1e-10,
    )
    network = build(one.with_(init="zero"), seed=0)
    reading = hessian(network, batch, loss=HalfSquareLoss(), norm_mode="eval")
    assert np.linalg.norm(reading.gradient) == pytest.approx(1.5115297623, abs=1e-10)
    assert not at_zero(ShortcutBlueprint(width=2, depth=3, shortcut=3), x, y).any()


def test_relu_at_exactly_zero_and_near_it():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 40, 4))
    plan = ShortcutBlueprint(width=4, depth=6, mid="relu", init="zero")
    assert not at_zero(plan, x, y).any(), "torch takes relu'(0) = 0"
    network = build(plan, seed=0)
    weights = 1e-7 * rng.normal(size=(6, 4, 4))
    set_weights(network, weights)
    near = np.linalg.eigvalsh(measured(network, x, y))
    masked = relu_spectrum_near_zero(weights[::2], x, y)
    np.testing.assert_allclose(near, masked, atol=1e-5 * masked.max())
    smooth = eigenvalues_at_zero(plan, x, y)
    assert np.abs(smooth - near).max() > 0.1 * near.max()
    # The half-space moments average to the smooth formula over opposite signs.
    w = rng.normal(size=4)
    halves = [
        ((x - y) * activation("relu").slope(x @ (sign * w))[:, None]).T @ x / 40
        for sign in (1, -1)
    ]
    np.testing.assert_allclose(sum(halves) / 2, data_matrix(plan, x, y), rtol=1e-12)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (ShortcutBlueprint(width=2, depth=2, skip=False), "skip connections"),
        (ShortcutBlueprint(width=2, depth=2, mid="exp"), "not 0 at 0"),
        (
            ShortcutBlueprint(width=2, depth=1, shortcut=1, post="relu"),
            "second derivative",
        ),
        (ShortcutBlueprint(width=3, depth=2), "width 2"),
    ],
)
def test_what_the_closed_form_does_not_cover_is_refused(plan, words, tiny):
    with pytest.raises(ConfigError, match=words):
        hessian_at_zero(plan, *tiny)
