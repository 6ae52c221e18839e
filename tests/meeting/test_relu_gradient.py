"""The closed-form gradient of ReLU networks against automatic differentiation."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from theodolite import instruments, networks
from theodolite.core import ShortcutBlueprint
from theodolite.theory import relu_gradient


@pytest.mark.parametrize("shortcut", [1, 2, 3])
@pytest.mark.parametrize("skip", [True, False])
def test_gradients_agree_and_open_gates_are_rejected(shortcut, skip):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 40, 5))
    plan = ShortcutBlueprint(
        width=5, depth=6, shortcut=shortcut, skip=skip, mid="relu", init="xavier"
    )
    network = networks.build(plan, seed=2)
    loss = instruments.HalfSquareLoss()(network(torch.tensor(x)), torch.tensor(y))
    loss.backward()
    measured = np.stack([p.grad.numpy() for p in network.parameters()])
    weights = networks.get_weights(network)
    value, gradient = relu_gradient(plan, weights, x, y)
    assert_close(value, float(loss.detach()), rtol=1e-12, atol=0)
    assert_close(gradient, measured, rtol=1e-10, atol=1e-13)
    if shortcut > 1:  # the rival: the same network without ReLU
        _, rival = relu_gradient(plan.with_(mid="identity"), weights, x, y)
        assert np.abs(rival - measured).max() > 0.1 * np.abs(measured).max()
