"""Layerwise networks: what they compute, count, and start from."""

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, LayerwiseBlueprint, UnknownNameError
from theodolite.networks import ScalarNorm, build, layer_scales
from theodolite.networks.fully_connected import LayerwiseNetwork

PLAN = LayerwiseBlueprint(inputs=5, width=7, depth=4, classes=3)


def by_hand(network, x):
    """Equation 20 written out, from the parameters alone."""
    tensors = dict(network.named_parameters())
    names = ["first", *(f"units.{k}" for k in range(network.blueprint.units))]
    for place, name in enumerate(names):
        z = (x @ tensors[f"{name}.weight.weight"].T).clamp(min=0)
        if network.blueprint.norm == "scalar":
            spread = (((z - z.mean(0)) ** 2).mean(0) + 1e-5).sqrt().mean()
            z = tensors[f"{name}.norm.scale"] / spread * z
        x = x + z if place else z
    return x @ tensors["head.weight"].T


@pytest.mark.parametrize("norm", ["scalar", "none"])
def test_the_definition(norm):
    network = build(PLAN.with_(norm=norm), seed=1)
    with torch.no_grad():
        for number, layer in enumerate(network.layers):
            if norm == "scalar":
                layer.norm.scale.fill_(0.5 + number)
    x = torch.randn(6, 5, dtype=torch.float64, generator=torch.manual_seed(0))
    torch.testing.assert_close(network(x), by_hand(network, x), rtol=1e-12, atol=0)


@pytest.mark.parametrize("norm", ["scalar", "batch", "none"])
def test_each_norm_becomes_its_network(norm):
    plan = PLAN.with_(norm=norm)
    network = build(plan, seed=3)
    assert type(network) is LayerwiseNetwork
    assert sum(p.numel() for p in network.parameters()) == plan.parameters
    assert len(network.units) == plan.units == 3
    assert len(layer_scales(network)) == plan.depth
    assert (layer_scales(network) == 1).all()


def test_norms_share_their_start():
    weights = [
        build(PLAN.with_(norm=norm), seed=2).units[1].weight.weight
        for norm in ("scalar", "batch", "none")
    ]
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])
    half = build(PLAN.with_(init_scale=0.5), seed=2).units[1].weight.weight
    assert torch.equal(2 * half, weights[0])


def test_batch_norm_stands_before_the_relu():
    network = build(PLAN.with_(norm="batch"), seed=0)
    x = torch.randn(64, 5, dtype=torch.float64, generator=torch.manual_seed(1))
    out = network.first(x)
    assert (out >= 0).all()
    assert (out == 0).any()


class TestScalarNorm:
    def test_one_number_for_all_units(self):
        x = torch.tensor([[0.0, 0.0], [2.0, 6.0]])
        norm = ScalarNorm(eps=0.0)
        torch.testing.assert_close(norm(x), x / 2.0)

    def test_it_is_differentiated_through(self):
        draw = torch.manual_seed(0)
        x = torch.rand(8, 3, dtype=torch.float64, generator=draw).requires_grad_()
        out = ScalarNorm().double()(x).sum()
        (slope,) = torch.autograd.grad(out, x)
        # Doubling the input changes next to nothing, so that the radial part is small.
        assert abs(float((slope * x).sum().detach())) < 1e-3 * float(out.detach())

    def test_silent_units_have_a_gradient(self):
        x = torch.zeros(4, 3, requires_grad=True)
        (slope,) = torch.autograd.grad(ScalarNorm()(x).sum(), x)
        assert torch.isfinite(slope).all()

    def test_eval_uses_the_running_mean(self):
        x = torch.tensor([[0.0], [4.0]])
        norm = ScalarNorm(momentum=1.0, eps=0.0)
        norm(x)
        norm.eval()
        torch.testing.assert_close(norm(3 * x), 3 * x / 2.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depth": 0}, "depth is 0"),
        ({"inputs": True}, "inputs is True"),
        ({"init_scale": 0.0}, "init_scale is 0.0"),
        ({"init_scale": np.inf}, "init_scale is inf"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(ConfigError, match=words):
        PLAN.with_(**changes)


def test_an_unknown_norm_is_refused():
    with pytest.raises(UnknownNameError, match="norm"):
        PLAN.with_(norm="layer")


def test_inputs_of_another_width_are_refused():
    with pytest.raises(ConfigError, match="wants \\(samples, 5\\)"):
        build(PLAN, seed=0)(torch.ones(2, 4, dtype=torch.float64))
