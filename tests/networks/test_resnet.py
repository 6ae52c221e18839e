"""Pre-activation ResNets: what they compute, count, and start from."""

import copy
import math

import pytest
import torch
from torch.nn import functional

from theodolite.core import ConfigError, ResnetBlueprint, TheodoliteError
from theodolite.networks import build

SMALL = ResnetBlueprint(width=4, blocks=(1, 2, 1), channels=2, classes=5)
KINDS = [
    SMALL,
    SMALL.with_(added_identity=1.0),
    SMALL.with_(added_identity=0.5, block="bottleneck", depth=0),
    SMALL.with_(added_identity=1.0, stem="large"),
]


def by_hand(network, x):
    """The definition written out from the parameters alone, in train mode."""
    plan, tensors = network.blueprint, dict(network.named_parameters())

    def activated(name, z):
        mean = z.mean((0, 2, 3), keepdim=True)
        spread = z.var((0, 2, 3), unbiased=False, keepdim=True)
        z = (z - mean) / (spread + 1e-5).sqrt()
        scale, shift = (tensors[f"{name}.{k}"] for k in ("weight", "bias"))
        return (z * scale[:, None, None] + shift[:, None, None]).clamp(min=0)

    if plan.stem == "large":
        x = functional.conv2d(x, tensors["stem.weight"], stride=2, padding=3)
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
    else:
        x = functional.conv2d(x, tensors["stem.weight"], padding=1)
    starts = [sum(plan.blocks[:stage]) for stage in range(1, len(plan.blocks))]
    for unit in range(sum(plan.blocks)):
        name, stride = f"units.{unit}", 2 if unit in starts else 1
        z = activated(f"{name}.norms.0", x)
        if f"{name}.projection.weight" in tensors:
            weight = tensors[f"{name}.projection.weight"]
            x = functional.conv2d(z, weight, stride=stride)
            a, b = weight.shape[1], weight.shape[0]
            pooled = stride * functional.avg_pool2d(z, stride)
            first = (b - a) // 2
            x[:, first : first + a] += plan.added_identity * pooled
        three = plan.block == "bottleneck"
        strides, pads = ((1, stride, 1), (0, 1, 0)) if three else ((stride, 1), (1, 1))
        for layer, (step, pad) in enumerate(zip(strides, pads, strict=True)):
            z = activated(f"{name}.norms.{layer}", z) if layer else z
            weight = tensors[f"{name}.convolutions.{layer}.weight"]
            z = functional.conv2d(z, weight, stride=step, padding=pad)
        x = x + z
    return x.mean((2, 3)) @ tensors["head.weight"].T + tensors["head.bias"]


@pytest.mark.parametrize("plan", KINDS, ids=["plain", "added", "bottleneck", "large"])
def test_forward_is_the_definition(plan):
    network = build(plan, seed=1, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "norms" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
    side = 32 if plan.stem == "large" else 8
    x = torch.randn(3, 2, side, side, dtype=torch.float64)
    torch.testing.assert_close(network(x), by_hand(network, x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        # As counted in the networks that the paper names, on 32×32 and 10 classes.
        (ResnetBlueprint(), 11_171_146),
        (ResnetBlueprint(blocks=(3, 4, 6, 3), block="bottleneck"), 23_509_066),
    ],
    ids=["18", "50"],
)
def test_parameters_are_those_of_the_published_networks(plan, count):
    assert plan.parameters == count
    network = build(plan, seed=0, device="meta")
    assert sum(p.numel() for p in network.parameters()) == count


def test_original_and_modified_start_at_the_same_weights():
    before = torch.get_rng_state()
    states = [
        build(SMALL.with_(added_identity=scale), seed=seed).state_dict()
        for scale, seed in ((0.0, 3), (1.0, 3), (0.0, 4))
    ]
    assert torch.equal(before, torch.get_rng_state())
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(a, states[1][name]) for name, a in states[0].items())
    assert not torch.equal(states[0]["stem.weight"], states[2]["stem.weight"])


def test_weights_are_drawn_as_torch_draws_its_own():
    network = build(ResnetBlueprint(width=32, blocks=(1, 1)), seed=0)
    for layer in network.modules():
        if not isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            continue
        bound = 1 / math.sqrt(layer.weight[0].numel())
        twin = copy.deepcopy(layer)
        twin.reset_parameters()
        for mine, theirs in zip(layer.parameters(), twin.parameters(), strict=True):
            assert mine.abs().max() <= bound * (1 + 1e-6)
            assert theirs.abs().max() <= bound * (1 + 1e-6)
            if mine.numel() > 500:
                assert mine.std().item() == pytest.approx(theirs.std().item(), rel=0.1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"blocks": ()}, "blocks is ()"),
        ({"blocks": (2, 0)}, "whole numbers from 1 up"),
        ({"blocks": "22"}, "blocks is '22'"),
        ({"block": "botleneck"}, "did you mean 'bottleneck'"),
        ({"stem": "huge"}, "unknown stem"),
        ({"added_identity": math.inf}, "added_identity is inf"),
        ({"added_identity": True}, "added_identity is True"),
        ({"depth": 18}, "these blocks make 10 layers"),
        ({"width": 0}, "width is 0"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_sentence(changes, words):
    with pytest.raises(TheodoliteError) as caught:
        SMALL.with_(**changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_images_that_do_not_fit_are_refused_in_one_sentence():
    with pytest.raises(ConfigError, match="wants \\(samples, 2, height, width\\)"):
        build(SMALL, seed=0)(torch.zeros(2, 8, 8, 3))
    with pytest.raises(ConfigError, match="multiples of the stride 2"):
        build(SMALL.with_(added_identity=1.0), seed=0)(torch.zeros(2, 2, 6, 6))
