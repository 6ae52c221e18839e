"""Surgery on the original PreAct-ResNet gives the network that is built modified."""

import pytest
import torch
from torch.testing import assert_close

from theodolite import surgery
from theodolite.core import ResnetBlueprint
from theodolite.networks import build

IMAGES = torch.linspace(-2, 2, 4 * 3 * 16 * 16).sin().reshape(4, 3, 16, 16)


@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize(("block", "projections"), [("basic", 3), ("bottleneck", 4)])
def test_the_altered_network_is_the_modified_build(block, projections, scale):
    settings = {"width": 4, "block": block}
    plan = ResnetBlueprint(**settings)
    original = build(plan, seed=1, dtype=torch.float64)
    plan = ResnetBlueprint(**settings, added_identity=scale)
    modified = build(plan, seed=1, dtype=torch.float64)
    images = IMAGES.double()
    result = surgery.add_identity(original, images, scale=scale)
    assert len(result.log.done) == projections
    assert not result.log.left
    assert list(result.model.state_dict()) == list(modified.state_dict())
    for mode in (False, True):
        outputs = [m.train(mode)(images) for m in (result.model, modified)]
        assert_close(outputs[0], outputs[1], rtol=1e-12, atol=1e-12)
        for each in outputs:
            each.square().sum().backward()
    for (name, one), other in zip(
        result.model.named_parameters(), modified.parameters(), strict=True
    ):
        assert_close(one.grad, other.grad, rtol=1e-9, atol=1e-9, msg=name)
    other = original.train()(images)
    assert (other - outputs[1]).abs().max() > 1e-3


def test_training_either_gives_the_same_network():
    plan = ResnetBlueprint(width=4, blocks=(1, 1))
    result = surgery.add_identity(
        build(plan, seed=0, dtype=torch.float64), IMAGES.double()
    )
    plan = ResnetBlueprint(width=4, blocks=(1, 1), added_identity=1.0)
    networks = [result.model, build(plan, seed=0, dtype=torch.float64)]
    for network in networks:
        optim = torch.optim.SGD(network.parameters(), lr=0.05)
        for _ in range(3):
            optim.zero_grad()
            network(IMAGES.double()).square().mean().backward()
            optim.step()
    for one, other in zip(*(n.state_dict().values() for n in networks), strict=True):
        assert_close(one, other, rtol=1e-9, atol=1e-12)
