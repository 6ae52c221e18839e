"""Networks of two blocks: sizes, equal starts, and what is added."""

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, TwoBlockBlueprint, UnknownNameError
from theodolite.networks import AverageSkip, HaarSkip, build
from theodolite.networks.two_block import RandomSkip, TwoBlockNetwork

SMALL = {"side": 8, "stem_kernel": 3, "stem_pool": 1, "kernel": 3, "stride": 2}
PLANS = [
    TwoBlockBlueprint(skips=False),
    TwoBlockBlueprint(),
    TwoBlockBlueprint(added=1.0),
    TwoBlockBlueprint(added=0.5, isometry="haar", **SMALL),
    TwoBlockBlueprint(added=2.0, isometry="random", **SMALL),
    TwoBlockBlueprint(added=1.0, place="branch", **SMALL),
]


def images(plan, samples=3):
    draw = torch.Generator().manual_seed(0)
    return torch.randn(samples, 1, plan.side, plan.side, generator=draw)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_sizes_are_those_foretold(plan):
    network = build(plan, seed=0)
    assert type(network) is TwoBlockNetwork
    assert network.blueprint == plan
    assert sum(p.numel() for p in network.parameters()) == plan.parameters
    x = images(plan)
    inner = network.pool(network.stem(x))
    assert inner.shape == (3, plan.width, plan.inner, plan.inner)
    shrunk = network.shrinking(network.keeping(inner))
    assert shrunk.shape == (3, plan.wide, plan.shrunk, plan.shrunk)
    assert network(x).shape == (3, plan.classes)


def test_sizes_of_the_paper():
    plan = TwoBlockBlueprint(added=1.0)
    assert (plan.inner, plan.shrunk, plan.features) == (12, 4, 320)
    assert plan.parameters == 9970
    assert plan.with_(side=22).shrunk == 3  # stride 3 takes a side of 9 as well


def test_networks_with_other_skips_start_at_the_same_weights():
    chain, res, average = (build(plan, seed=7) for plan in PLANS[:3])
    common = chain.state_dict()
    for other in (res, average):
        state = other.state_dict()
        assert common.keys() < state.keys()
        assert all(torch.equal(common[name], state[name]) for name in common)
    assert torch.equal(res.shrinking.project.weight, average.shrinking.project.weight)
    other = build(PLANS[0], seed=8).state_dict()
    assert not torch.equal(common["stem.weight"], other["stem.weight"])


def test_the_added_average_is_three_pools_between_seven_and_eight_channels():
    _, res, average = (build(plan, seed=0) for plan in PLANS[:3])
    u = torch.rand(2, 5, 12, 12)
    added = average.shrinking.skip(u) - res.shrinking.skip(u)
    pooled = 3 * torch.nn.functional.avg_pool2d(u, 3)
    torch.testing.assert_close(added[:, 7:12], pooled, rtol=1e-5, atol=1e-6)
    assert float(added[:, :7].detach().abs().max()) < 1e-6
    assert float(added[:, 12:].detach().abs().max()) < 1e-6


def test_in_the_branch_it_stands_beside_the_first_convolution():
    plan = PLANS[-1]
    with_it, without = (
        build(plan.with_(added=c), seed=0).shrinking for c in (1.0, 0.0)
    )
    u = torch.rand(2, 5, 6, 6)
    torch.testing.assert_close(with_it.skip(u), without.skip(u))
    gap = (with_it.branch.inner(u) - without.branch.inner(u)).detach()
    assert gap.shape == (2, 20, 3, 3)
    assert float(gap.abs().max()) > 0.1


@pytest.mark.parametrize(("into", "out"), [(5, 20), (1, 9), (1, 12)])
def test_a_random_skip_has_singular_values_one_alone(into, out):
    skip = RandomSkip(into, out, 3, scale=2.0, seed=1)
    size = into * 36
    units = torch.eye(size, dtype=torch.float64).reshape(size, into, 6, 6)
    values = torch.linalg.svdvals(skip(units).flatten(1)).numpy()
    np.testing.assert_allclose(values[: min(size, out * 4)], 2.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("init", "square"),
    [("default", 1 / 3), ("he", 2.0), ("xavier", 1.0), ("orthogonal", 1.0)],
)
def test_weights_have_the_variance_of_their_scheme(init, square):
    """Times fan-in; outputs and inputs of the first block are equally many."""
    plan = TwoBlockBlueprint(width=16, wide=16, init=init, init_scale=0.5)
    weight = build(plan, seed=0).keeping.branch.first.weight.detach()
    fan_in = weight[0].numel()
    moment = float(weight.square().mean()) * fan_in
    assert moment == pytest.approx(0.25 * square, rel=0.05)


def test_the_scale_leaves_stem_and_readout_alone():
    one, half = (build(PLANS[1].with_(init_scale=c), seed=0) for c in (1.0, 0.5))
    for name, weight in one.named_parameters():
        other = half.get_parameter(name)
        inside = name.startswith(("keeping", "shrinking")) and weight.ndim == 4
        factor = 0.5 if inside else 1.0
        torch.testing.assert_close(other, factor * weight)


REFUSED = [
    ({"depth": 5}, "depth is 5: a network of two blocks has 6 layers"),
    ({"wide": 4}, "the second block takes 5 channels to 4: an identity has no room"),
    ({"skips": False, "added": 1.0}, "added is 1.0 in a network without skips"),
    ({"kernel": 4}, "kernel is 4: a block that keeps the side"),
    ({"side": 27}, "a stem of kernel 5 makes 23 pixels of 27"),
    ({"stride": 4}, "stride is 4: pass 2 or 3"),
    ({"side": 34}, "branch and skip of stride 3 do not shrink a side of 15 alike"),
    ({"added": -1.0}, "added is -1.0: pass a number from 0 up"),
    ({"init_scale": 0.0}, "init_scale is 0.0: pass a positive number"),
    ({"skips": 1}, "skips is 1: pass True or False"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED)
def test_what_cannot_be_built_is_refused_in_one_sentence(given, text):
    with pytest.raises(ConfigError) as caught:
        TwoBlockBlueprint(**given)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["isometry", "place", "init"])
def test_unknown_words_are_refused(name):
    with pytest.raises(UnknownNameError, match=name):
        TwoBlockBlueprint(**{name: "nothing"})


def test_images_of_another_side_are_refused():
    with pytest.raises(ConfigError, match=r"wants \(samples, 1, 28, 28\)"):
        build(PLANS[0], seed=0)(torch.zeros(2, 1, 8, 8))


@pytest.mark.parametrize(
    ("isometry", "kind"),
    [("average", AverageSkip), ("haar", HaarSkip), ("random", RandomSkip)],
)
def test_the_fixed_map_is_the_one_asked_for(isometry, kind):
    network = build(TwoBlockBlueprint(added=1.0, isometry=isometry, **SMALL), seed=0)
    kinds = {type(module) for module in network.modules()}
    assert kinds & {AverageSkip, HaarSkip, RandomSkip} == {kind}
