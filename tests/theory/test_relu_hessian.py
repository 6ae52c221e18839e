"""The exact Hessian of ReLU networks, without torch: limits, parts, refusals."""

import numpy as np
import pytest

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.theory import (
    linear_hessian,
    moments,
    relu_hessian,
    relu_hessian_parts,
    relu_spectrum_near_zero,
)


def problem(seed, plan, samples=11):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, samples, plan.width))
    weights = rng.normal(size=(plan.depth, plan.width, plan.width)) / plan.width**0.5
    return weights, x, y


def loss_of(plan, weights, x, y):
    """The loss of a 2-shortcut network with ReLU at mid, written out."""
    for first, second in weights.reshape(-1, 2, plan.width, plan.width):
        x = x + np.maximum(x @ first.T, 0) @ second.T
    return 0.5 * np.mean(np.sum((x - y) ** 2, axis=1))


def assert_close(result, wanted):
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(result, wanted, rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize("shortcut", [1, 2, 3])
@pytest.mark.parametrize("skip", [True, False])
def test_without_relu_it_is_the_linear_hessian(shortcut, skip):
    plan = ShortcutBlueprint(width=3, depth=2 * shortcut, shortcut=shortcut, skip=skip)
    weights, x, y = problem(0, plan)
    wanted = linear_hessian(plan, weights, moments(x, y))
    assert_close(relu_hessian(plan, weights, x, y), wanted)


def test_with_all_gates_open_it_is_the_linear_hessian():
    plan = ShortcutBlueprint(width=3, depth=4, mid="relu")
    weights, x, y = problem(0, plan)
    weights, x = np.abs(weights), np.abs(x)
    wanted = linear_hessian(plan.with_(mid="identity"), weights, moments(x, y))
    assert_close(relu_hessian(plan, weights, x, y), wanted)
    with pytest.raises(AssertionError):
        assert_close(relu_hessian(plan, -weights, x, y), wanted)


def test_second_differences_of_the_loss():
    plan = ShortcutBlueprint(width=2, depth=4, mid="relu")
    weights, x, y = problem(3, plan, samples=4)
    parts = relu_hessian_parts(plan, weights, x, y)
    step = 1e-5
    assert parts.margin > 50 * step, "the differences must not cross a kink"
    # The paper's order: layer, column, row.
    places = [(k, i, j) for k in range(4) for j in range(2) for i in range(2)]
    result = np.empty((16, 16))
    for a, b in np.ndindex(16, 16):
        total = 0.0
        for s in (1, -1):
            for t in (1, -1):
                moved = weights.copy()
                moved[places[a]] += s * step
                moved[places[b]] += t * step
                total += s * t * loss_of(plan, moved, x, y)
        result[a, b] = total / (2 * step) ** 2
    np.testing.assert_allclose(parts.whole, result, atol=1e-4 * np.abs(result).max())


def test_parts():
    plan = ShortcutBlueprint(width=3, depth=6, mid="relu")
    weights, x, y = problem(1, plan)
    parts = relu_hessian_parts(plan, weights, x, y)
    assert_close(parts.whole, relu_hessian(plan, weights, x, y))
    np.testing.assert_array_equal(parts.whole, parts.whole.T)
    assert np.linalg.eigvalsh(parts.gauss_newton).min() > -1e-12
    blocks = parts.residual.reshape(6, 9, 6, 9)
    for k in range(6):
        assert not blocks[k, :, k].any()
        assert blocks[k, :, k - 1].any()


def test_where_the_network_fits_only_gauss_newton_is_left():
    plan = ShortcutBlueprint(width=3, depth=4, mid="relu")
    weights, x, _ = problem(2, plan)
    fitted = x
    for first, second in weights.reshape(-1, 2, 3, 3):
        fitted = fitted + np.maximum(fitted @ first.T, 0) @ second.T
    parts = relu_hessian_parts(plan, weights, x, fitted)
    assert np.abs(parts.residual).max() < 1e-12 * np.abs(parts.gauss_newton).max()


def test_chunks_change_nothing(monkeypatch):
    plan = ShortcutBlueprint(width=3, depth=4, mid="relu")
    weights, x, y = problem(4, plan, samples=23)
    whole = relu_hessian(plan, weights, x, y)
    module = __import__("sys").modules[relu_hessian.__wrapped__.__module__]
    monkeypatch.setattr(module, "_CHUNK_BYTES", 8 * 4 * 6 * 9 * 5)
    assert_close(relu_hessian(plan, weights, x, y), whole)


def test_small_weights_have_the_spectrum_of_half_space_moments():
    plan = ShortcutBlueprint(width=3, depth=4, mid="relu")
    weights, x, y = problem(5, plan, samples=30)
    gaps = []
    for small in (1e-2, 1e-3):
        values = np.linalg.eigvalsh(relu_hessian(plan, small * weights, x, y))
        wanted = relu_spectrum_near_zero(small * weights[::2], x, y)
        gaps.append(np.abs(values - wanted).max())
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mid": "tanh"}, r"instruments\.hessian"),
        ({"mid": "relu", "bias": True}, "bias=True"),
        ({"mid": "relu", "depth": 8}, r"wants \(8, 3, 3\)"),
        ({"mid": "relu", "width": 4}, "width 4"),
    ],
)
def test_what_frozen_gates_do_not_cover_is_refused(changes, words):
    plan = ShortcutBlueprint(width=3, depth=4)
    weights, x, y = problem(0, plan)
    with pytest.raises(ConfigError, match=words):
        relu_hessian(plan.with_(**changes), weights, x, y)
