"""Readings of networks that people use: trained, convolutional, and deep."""

import copy
import os

import numpy as np
import pytest
import torch
from torch import nn

from theodolite import data, networks
from theodolite.core import PreactivationBlueprint
from theodolite.instruments import HalfSquareLoss
from theodolite.paths import lesion, path_ensemble


@pytest.fixture(scope="module")
def trained():
    """A pre-activation network on digits, trained for a few seconds."""
    digits = data.load("digits")
    pixels = torch.tensor(np.array(digits.images), dtype=torch.float64)[:, None]
    pixels = (pixels - pixels.mean()) / pixels.std()
    labels = torch.tensor(np.array(digits.labels))
    plan = PreactivationBlueprint(depth=8, width=8, stages=1, channels=1)
    network = networks.build(plan, seed=3).double()
    descent = torch.optim.Adam(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(5)
    network.train()
    for _ in range(80):
        chosen = torch.randint(len(labels), (64,), generator=generator)
        descent.zero_grad()
        nn.functional.cross_entropy(network(pixels[chosen]), labels[chosen]).backward()
        descent.step()
    network.eval()
    with torch.no_grad():
        right = (network(pixels).argmax(1) == labels).double().mean()
    assert right > 0.8
    return network, pixels[:24]


def test_lesions_of_a_trained_network_add_up(trained):
    network, x = trained
    result = lesion(network, x, norm_mode="eval", exchange=[(0, 1)])
    assert result.residual[0] < 1e-12
    # Gates behind a branch react to its loss, which frozen paths do not know.
    assert (np.abs(result.true_change / result.frozen_change - 1) > 1e-3).any()
    with torch.no_grad():
        whole = network(x)
        for place in range(3):
            cut = copy.deepcopy(network)
            convolutions = [
                m for m in cut.units[place].modules() if isinstance(m, nn.Conv2d)
            ]
            convolutions[-1].weight.zero_()
            change = float((cut(x) - whole).norm() / whole.norm())
            assert result.true_change[place] == pytest.approx(change)


def test_ensemble_of_a_trained_network_is_its_output(trained):
    network, x = trained
    result = path_ensemble(network, x, norm_mode="eval")
    assert result.residual.max() < 1e-12
    np.testing.assert_allclose(result.share.sum(1), 1)
    fresh = path_ensemble(
        networks.build(network.blueprint, seed=3).double(), x, norm_mode="batch"
    )
    assert abs(result.effective_depth[0] - fresh.effective_depth[0]) > 0.01


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("THEODOLITE_DATA"), reason="wants CIFAR-10")
def test_110_layers_on_images_in_minutes():
    images = np.array(data.load("cifar10", "test").images[:4])
    x = torch.tensor(images, dtype=torch.float64).permute(0, 3, 1, 2) / 128 - 1
    network = networks.build(PreactivationBlueprint(depth=110), seed=0).double().eval()
    y = torch.zeros(len(x), 10, dtype=torch.float64)
    result = path_ensemble(network, (x, y), norm_mode="batch", loss=HalfSquareLoss())
    assert result.residual.max() < 1e-10
    assert result.share.shape == (2, 55)
    assert result.cost.cpu_s < 300
