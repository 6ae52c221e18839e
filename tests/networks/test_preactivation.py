"""Pre-activation networks: what they compute, count, and start from."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from theodolite.core import ConfigError, PreactivationBlueprint, TheodoliteError
from theodolite.networks import PreactivationNetwork, build, unit_convolutions


def by_hand(network, x):
    """The definition written out layer by layer, from the parameters alone."""
    plan = network.blueprint
    tensors = dict(network.named_parameters())

    def layer(name, number, z, stride):
        scale = tensors[f"{name}norms.{number}.weight"]
        shift = tensors[f"{name}norms.{number}.bias"]
        mean = z.mean((0, 2, 3), keepdim=True)
        spread = z.var((0, 2, 3), unbiased=False, keepdim=True)
        z = (z - mean) / (spread + 1e-5).sqrt()
        z = (z * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)).clamp(min=0)
        weight = tensors[f"{name}convolutions.{number}.weight"]
        return functional.conv2d(z, weight, stride=stride, padding=1)

    x = functional.conv2d(x, tensors["stem.weight"], padding=1)
    per_stage = plan.units // plan.stages
    for unit in range(plan.units):
        halve = unit > 0 and unit % per_stage == 0
        z = x
        for number in range(plan.shortcut):
            z = layer(f"units.{unit}.", number, z, 2 if halve and not number else 1)
        if halve:
            x = torch.cat([x[:, :, ::2, ::2], torch.zeros_like(x[:, :, ::2, ::2])], 1)
        x = x + z if plan.skip else z
    mean = x.mean((0, 2, 3), keepdim=True)
    spread = x.var((0, 2, 3), unbiased=False, keepdim=True)
    x = ((x - mean) / (spread + 1e-5).sqrt()).clamp(min=0).mean((2, 3))
    return x @ tensors["head.weight"].T + tensors["head.bias"]


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("shortcut", [1, 2, 3, 4])
def test_forward_is_the_definition(shortcut, skip):
    plan = PreactivationBlueprint(depth=26, shortcut=shortcut, width=3, stages=2,
                                  channels=2, classes=5, skip=skip)  # fmt: skip
    network = build(plan, seed=1, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "units" in name and "norms" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
    x = torch.randn(3, 2, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(network(x), by_hand(network, x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("depth", [38, 74, 110, 434])
def test_shortcut_depths_have_equal_parameters(depth):
    counts = set()
    for shortcut in (1, 2, 3, 4):
        plan = PreactivationBlueprint(depth=depth, shortcut=shortcut)
        network = PreactivationNetwork(plan)
        counts.add(sum(p.numel() for p in network.parameters()))
        assert len(unit_convolutions(network, stem=True)) == depth - 1
        assert plan.parameters in counts
        assert plan.units * shortcut == depth - 2
    assert len(counts) == 1


def test_the_count_of_a_network_by_hand():
    # Stem 3·4·9; layers 4→4, 4→4, 4→8, 8→8 with their norms; norm 8; head 8·10 + 10.
    plan = PreactivationBlueprint(depth=6, shortcut=2, width=4, stages=2)
    layers = [(4, 4), (4, 4), (4, 8), (8, 8)]
    assert plan.layer_channels == tuple(layers)
    assert plan.parameters == 108 + sum(9 * a * b + 2 * a for a, b in layers) + 16 + 90


def test_a_network_deeper_than_400_runs():
    plan = PreactivationBlueprint(depth=434, shortcut=2, width=4)
    network = build(plan, seed=0)
    scores = network(torch.randn(2, 3, 16, 16))
    assert scores.shape == (2, 10)
    assert scores.isfinite().all()


def test_weights_come_from_the_seed_and_not_from_torch():
    plan = PreactivationBlueprint(depth=14, shortcut=1, width=8, stages=1)
    before = torch.get_rng_state()
    first = build(plan, seed=3)
    twin = build(plan.with_(shortcut=4), seed=3)
    other = build(plan, seed=4)
    assert torch.equal(before, torch.get_rng_state())
    for a, b in zip(unit_convolutions(first), unit_convolutions(twin), strict=True):
        assert torch.equal(a.weight, b.weight)
    assert torch.equal(first.head.weight, twin.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)


def test_initial_variance_is_by_fan_out():
    plan = PreactivationBlueprint(depth=26, shortcut=1, width=16, stages=2)
    for layer in unit_convolutions(build(plan, seed=0)):
        weight = layer.weight.detach().double().numpy()
        wanted = np.sqrt(2 / (9 * weight.shape[0]))
        error = wanted / np.sqrt(2 * weight.size)
        assert abs(weight.std() - wanted) < 5 * error


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"depth": 40, "shortcut": 4}, "try depth 38"),
        ({"depth": 4}, "try depth 8"),
        ({"depth": 38, "width": 0}, "width is 0"),
        ({"depth": 38, "skip": 1}, "pass True or False"),
    ],
)
def test_impossible_blueprints_are_refused(settings, match):
    with pytest.raises(ConfigError, match=match):
        PreactivationBlueprint(**settings)


def test_a_wrong_input_is_refused():
    plan = PreactivationBlueprint(depth=5, shortcut=1, width=4)
    with pytest.raises(ConfigError, match="wants \\(samples, 3, height, width\\)"):
        build(plan, seed=0)(torch.zeros(2, 8, 8, 3))
    assert PreactivationBlueprint(**plan.to_dict()) == plan


class TestWithoutNormalisation:
    PLAN = PreactivationBlueprint(depth=8, width=4, norm="none", branch_scale=0.5)

    def test_parameters_are_counted(self):
        network = build(self.PLAN, seed=0)
        assert sum(p.numel() for p in network.parameters()) == self.PLAN.parameters
        assert not any("norm" in name for name, _ in network.named_parameters())

    def test_the_last_convolution_of_a_unit_is_scaled(self):
        small = build(self.PLAN, seed=0)
        full = build(self.PLAN.with_(branch_scale=1.0), seed=0)
        for a, b in zip(small.units, full.units, strict=True):
            assert torch.equal(a.convolutions[0].weight, b.convolutions[0].weight)
            assert torch.equal(2 * a.convolutions[1].weight, b.convolutions[1].weight)

    def test_images_scale_with_the_input(self):
        """Piecewise linear without shifts, up to the readout's bias, which is zero."""
        network = build(self.PLAN, seed=0)
        x = torch.randn(2, 3, 8, 8, generator=torch.manual_seed(0))
        torch.testing.assert_close(network(2 * x), 2 * network(x))

    @pytest.mark.parametrize(
        ("changes", "words"),
        [({"norm": "layer"}, "norm"), ({"branch_scale": -1}, "branch_scale is -1")],
    )
    def test_refusals(self, changes, words):
        with pytest.raises(TheodoliteError, match=words):
            self.PLAN.with_(**changes)
