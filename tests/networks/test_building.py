"""One builder makes every kind of blueprint, and refuses the rest."""

from dataclasses import dataclass
from typing import final

import pytest
import torch
from torch import nn

from theodolite.core import (
    Blueprint,
    ConfigError,
    PreactivationBlueprint,
    ResnetBlueprint,
    ShortcutBlueprint,
    SpinGlassBlueprint,
    normalised_residual,
)
from theodolite.networks import (
    PreactivationNetwork,
    ShortcutNetwork,
    SystemNetwork,
    build,
    initial_weights,
)
from theodolite.networks.resnet import ResnetNetwork
from theodolite.networks.spin_glass import SpinGlass

SHORTCUT = ShortcutBlueprint(width=3, depth=6, shortcut=3, bias=True, init="xavier")
PREACTIVATION = PreactivationBlueprint(depth=8, width=4, classes=5)
RESNET = ResnetBlueprint(width=4, blocks=(1, 2), block="bottleneck", classes=5)
SYSTEM = normalised_residual(inputs=4, widths=(3, 3, 2))
GLASS = SpinGlassBlueprint(width=4, mixture={2: 0.25, 5: 0.75})


@pytest.mark.parametrize(
    ("plan", "network", "dtype"),
    [
        (SHORTCUT, ShortcutNetwork, torch.float64),
        (PREACTIVATION, PreactivationNetwork, torch.float32),
        (RESNET, ResnetNetwork, torch.float32),
        (GLASS, SpinGlass, torch.float64),
        (SYSTEM, SystemNetwork, torch.float64),
    ],
    ids=["shortcut", "preactivation", "resnet", "spin glass", "system"],
)
def test_each_kind_becomes_its_network(plan, network, dtype):
    built = build(plan, seed=3)
    assert type(built) is network
    assert built.blueprint == plan
    assert {p.dtype for p in built.parameters()} == {dtype}
    assert sum(p.numel() for p in built.parameters()) == plan.parameters
    assert len(built.units) == plan.units
    for layer in built.modules():  # what others look for by their types
        assert type(layer) is nn.Linear or not isinstance(layer, nn.Linear)
        assert type(layer) is nn.Conv2d or not isinstance(layer, nn.Conv2d)
    half = build(plan, seed=3, dtype=torch.float16, device="meta")
    assert {(p.dtype, p.device.type) for p in half.parameters()} == {
        (torch.float16, "meta")
    }


@pytest.mark.parametrize(
    "plan", [SHORTCUT, PREACTIVATION, RESNET, GLASS, SYSTEM], ids=lambda plan: plan.kind
)
def test_the_seed_decides(plan):
    first, same, other = (
        torch.nn.utils.parameters_to_vector(build(plan, seed=seed).parameters())
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@final
@dataclass(frozen=True, kw_only=True)
class UnbuiltBlueprint(Blueprint):
    """A kind that no builder knows."""

    kind = "unbuilt network"
    units = parameters = 1


@pytest.mark.parametrize(
    "plan", [UnbuiltBlueprint(width=2, depth=2), None, "shortcut", ShortcutBlueprint]
)
def test_an_unknown_kind_is_refused_in_one_sentence(plan):
    with pytest.raises(ConfigError) as caught:
        build(plan, seed=0)
    message = str(caught.value)
    if isinstance(plan, UnbuiltBlueprint):
        assert "is no blueprint that networks can build: pass one of " in message
    else:
        assert message.startswith("blueprint is ")
        assert ": pass Blueprint " in message
    assert "\n" not in message


def test_matrices_are_drawn_for_shortcut_networks_alone():
    with pytest.raises(ConfigError, match="pass ShortcutBlueprint"):
        initial_weights(PREACTIVATION, seed=0)
