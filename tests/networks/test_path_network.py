"""Fully connected residual networks with shared weights are what Eq 7 says."""

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, PathBlueprint, UnknownNameError
from theodolite.networks import PathNetwork, build

PLAN = PathBlueprint(inputs=3, width=4, depth=5)


def by_hand(plan, weights, x):
    """Eq 7 with loops and nothing else."""
    signal = list(x)
    for layer, index in enumerate(plan.indices, start=1):
        into, width = index.shape
        branch = [
            max(0.0, sum(signal[a] * weights[index[a, b]] for a in range(into)))
            for b in range(width)
        ]
        skips = signal if layer > 1 and plan.skip else [0.0] * width
        signal = [r + s for r, s in zip(branch, skips, strict=True)]
    return sum(signal)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        PLAN.with_(skip=False),
        PLAN.with_(depth=1),
        PLAN.with_(unique=2),
        PLAN.with_(unique=3, sharing="by_input"),
    ],
)
def test_the_output_is_that_of_eq_7(plan):
    network = build(plan, seed=1)
    assert type(network) is PathNetwork
    x = np.random.default_rng(0).normal(size=(6, plan.inputs))
    weights = network.weights.detach().numpy()
    assert weights.shape == (plan.parameters,)
    wanted = [by_hand(plan, weights, point) for point in x]
    outputs = network(torch.as_tensor(x)).detach().numpy()
    np.testing.assert_allclose(outputs, wanted, rtol=1e-13)
    assert outputs.max() > 0


@pytest.mark.parametrize("scale", [None, 0.35])
@pytest.mark.parametrize("unique", [None, 2])
def test_weights_have_their_root_mean_square_exactly(scale, unique):
    plan = PLAN.with_(scale=scale, unique=unique)
    weights = build(plan, seed=0).weights.detach().numpy()
    assert np.sqrt(np.mean(weights**2)) == pytest.approx(scale or 0.5, rel=1e-14)
    assert plan.rms == (scale or 0.5)


def test_cyclic_sharing_is_that_of_its_formula():
    plan = PLAN.with_(unique=2, depth=2)
    first, second = plan.indices
    assert first.shape == (3, 4)
    assert (first[1, 2], second[1, 2]) == ((1 + 2 + 1) % 2, (1 + 2 + 2) % 2)
    rows = PLAN.with_(unique=3, sharing="by_input").indices[0]
    np.testing.assert_array_equal(rows, [[0] * 4, [1] * 4, [2] * 4])
    own = np.concatenate([index.ravel() for index in PLAN.indices])
    np.testing.assert_array_equal(own, np.arange(PLAN.edges))


def test_a_network_of_another_seed_or_type():
    one, two = (build(PLAN, seed=seed).weights for seed in (0, 1))
    assert not torch.equal(one, two)
    half = build(PLAN, seed=0, dtype=torch.float32)
    assert half(torch.ones(2, 3)).dtype == torch.float32


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depth": 0}, "depth is 0: pass a whole number from 1 up"),
        ({"inputs": 0}, "inputs is 0"),
        ({"unique": 0}, "unique is 0"),
        ({"skip": 1}, "skip is 1: pass True or False"),
        ({"scale": 0.0}, "scale is 0.0: pass a positive number"),
        ({"scale": float("inf")}, "scale is inf"),
        ({"sharing": "cylic"}, "did you mean 'cyclic'"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_sentence(changes, words):
    with pytest.raises((ConfigError, UnknownNameError)) as caught:
        PLAN.with_(**changes)
    assert words in str(caught.value)


def test_inputs_of_another_width_are_refused():
    with pytest.raises(ConfigError, match=r"this network wants \(samples, 3\)"):
        build(PLAN, seed=0)(torch.ones(2, 4).double())
