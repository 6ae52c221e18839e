"""Frozen gates against double backward, at any weights of ReLU networks.

Rivals: Gauss–Newton alone, all gates open, the layers in the other order.
"""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.meeting.problems import assert_agree, assert_differ, measured
from theodolite.core import ShortcutBlueprint, column_major
from theodolite.instruments import GaussNewton, HalfSquareLoss
from theodolite.networks import build, get_weights, set_weights
from theodolite.theory import (
    linear_hessian,
    moments,
    relu_hessian,
    relu_hessian_parts,
)

POSITIONS = st.fixed_dictionaries(
    {name: st.sampled_from(["identity", "relu"]) for name in ("pre", "mid", "post")}
)


def data(seed, width, samples=12):
    return np.random.default_rng(seed).normal(size=(2, samples, width))


@settings(max_examples=25)
@given(
    st.integers(1, 3), st.integers(1, 3), POSITIONS, st.booleans(), st.integers(0, 999),
    st.sampled_from([1e-3, 0.3, 1.0]),
)  # fmt: skip
def test_closed_form_equals_measurement(shortcut, units, names, skip, seed, scale):
    plan = ShortcutBlueprint(
        width=3, depth=shortcut * units, shortcut=shortcut, skip=skip, init="xavier",
        **names,
    )  # fmt: skip
    network = build(plan, seed=seed)
    set_weights(network, scale * get_weights(network))
    x, y = data(seed, 3)
    matrix = relu_hessian(plan, get_weights(network), x, y)
    assert_agree(matrix, measured(network, x, y))


@settings(max_examples=20)
@given(st.integers(0, 999))
def test_rejects_its_rivals(seed):
    plan = ShortcutBlueprint(width=4, depth=6, mid="relu", init="xavier")
    network = build(plan, seed=seed)
    weights, (x, y) = get_weights(network), data(seed, 4)
    measurement = measured(network, x, y)
    parts = relu_hessian_parts(plan, weights, x, y)
    assert_agree(parts.whole, measurement)
    assert_differ(parts.gauss_newton, measurement, by=1e-3)
    linear = linear_hessian(plan.with_(mid="identity"), weights, moments(x, y))
    assert_differ(linear, measurement, by=1e-3)
    assert_differ(relu_hessian(plan, weights[::-1], x, y), measurement, by=1e-3)


def test_gauss_newton_part_equals_the_operator():
    plan = ShortcutBlueprint(width=4, depth=6, mid="relu", init="xavier")
    network, (x, y) = build(plan, seed=0), data(0, 4)
    operator = GaussNewton(
        network, (torch.as_tensor(x), torch.as_tensor(y)), loss=HalfSquareLoss(),
        norm_mode="eval",
    )  # fmt: skip
    order = column_major([tuple(p.shape) for p in network.parameters()])
    parts = relu_hessian_parts(plan, get_weights(network), x, y)
    assert_agree(parts.gauss_newton, operator.dense()[np.ix_(order, order)])


def test_agrees_after_training():
    plan = ShortcutBlueprint(width=4, depth=6, mid="relu", init="xavier")
    network, (x, y) = build(plan, seed=1), data(1, 4)
    inputs, targets = torch.as_tensor(x), torch.as_tensor(y)
    optim = torch.optim.SGD(network.parameters(), lr=0.02)
    for _ in range(100):
        optim.zero_grad()
        HalfSquareLoss()(network(inputs), targets).backward()
        optim.step()
    result = relu_hessian(plan, get_weights(network), x, y)
    assert_agree(result, measured(network, x, y))
