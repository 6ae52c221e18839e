"""Interpolating networks as torch networks: the same outputs, the same norms."""

import numpy as np
import pytest
import torch

from theodolite.core import ShortcutBlueprint
from theodolite.networks import build
from theodolite.theory import interpolating_network


def as_network(built):
    """Load weights and biases into the network that the blueprint describes."""
    d = built.first.shape[1]
    plan = ShortcutBlueprint(
        width=d, depth=2 * built.units, shortcut=2, mid="relu", bias=True
    )
    network = build(plan, seed=0)
    with torch.no_grad():
        for r, unit in enumerate(network.units):
            unit.layers[0].weight.copy_(torch.as_tensor(built.first[r]))
            unit.layers[1].weight.copy_(torch.as_tensor(built.second[r]))
            unit.layers[0].bias.copy_(torch.as_tensor(built.bias[r]))
    return network


def outputs(network, x):
    with torch.no_grad():
        return network(torch.as_tensor(x)).numpy()


@pytest.mark.parametrize("units", [30, 240])
def test_the_reference_as_a_torch_network(units):
    x = np.array([np.ones(3) / np.sqrt(3), [0.6, 0.0, 0.8], [-0.6, 0.8, 0.0]])
    built = interpolating_network(x, np.eye(3), units)
    network = as_network(built)
    np.testing.assert_allclose(outputs(network, x), np.eye(3), atol=1e-9)
    norms = [float(p.detach().norm()) for p in network.parameters() if p.ndim == 2]
    assert max(norms) == pytest.approx(built.max_norm, rel=1e-12)
    # The rival: the same units in the other order do not interpolate.
    turned = type(built)(
        **{**vars(built), **{k: getattr(built, k)[::-1].copy()
                             for k in ("first", "second", "bias")}}
    )  # fmt: skip
    assert np.abs(outputs(as_network(turned), x) - np.eye(3)).max() > 0.1


def test_a_loop_closed_around_torch_holds_at_small_distances():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 10, 9))
    x[1] = x[0] + 0.11 * rng.normal(size=9)
    x, y = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (x, y))
    single = as_network(interpolating_network(np.eye(9)[:1], np.eye(9)[1:2], 1))

    def through_torch(rows, first, second, bias):
        unit = single.units[0]
        with torch.no_grad():
            unit.layers[0].weight.copy_(torch.as_tensor(first))
            unit.layers[1].weight.copy_(torch.as_tensor(second))
            unit.layers[0].bias.copy_(torch.as_tensor(bias))
        return outputs(single, rows)

    built = interpolating_network(x, y, 300, propagate=through_torch)
    assert 0.05 < built.rho < 0.1
    np.testing.assert_allclose(outputs(as_network(built), x), y, atol=1e-9)
    # The rival, weights from the path alone, loses the close pair.
    opened = interpolating_network(x, y, 300, closed_loop=False)
    with np.errstate(all="ignore"):
        missed = np.abs(outputs(as_network(opened), x) - y)
    assert np.nan_to_num(missed, nan=np.inf).max() > 1e-3
