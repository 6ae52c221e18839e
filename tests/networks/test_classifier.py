"""Plain classifiers: what they compute, count, and start from."""

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core import ClassifierBlueprint, ConfigError, TheodoliteError
from theodolite.networks import ClassifierNetwork, build
from theodolite.networks.classifier import initial_classifier_weights

DENSE = ClassifierBlueprint(inputs=(2, 3), width=5, start_norm=3.0)
IMAGES = ClassifierBlueprint(
    inputs=(2, 9, 8), width=3, family="convolutional", outputs=4
)


@pytest.mark.parametrize("plan", [DENSE, IMAGES], ids=["dense", "convolutional"])
@pytest.mark.parametrize("norm", ["batch", "none"])
def test_layers_start_at_their_norm_and_have_no_bias(plan, norm):
    network = build(plan.with_(norm=norm, start_norm=7.0), seed=1, dtype=torch.float64)
    assert type(network) is ClassifierNetwork
    assert sum(p.numel() for p in network.parameters()) == plan.parameters
    norms = [float(w.detach().norm()) for w in network.weights]
    np.testing.assert_allclose(norms, 7.0, rtol=1e-12)
    batch_norms = [
        m for m in network.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)
    ]
    assert len(batch_norms) == (plan.depth - 1 if norm == "batch" else 0)
    assert not any(m.affine for m in batch_norms)


def test_networks_are_chains_of_matrices_and_rectifiers():
    network = build(DENSE.with_(norm="none"), seed=0, dtype=torch.float64)
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    state = x.flatten(1).T
    matrices = [torch.as_tensor(m) for m in initial_classifier_weights(DENSE, seed=0)]
    for matrix in matrices[:-1]:
        state = (matrix @ state).clamp(min=0)
    torch.testing.assert_close(network(x), (matrices[-1] @ state).T)


def test_the_last_convolution_covers_what_is_left_of_the_image():
    network = build(IMAGES, seed=0)
    assert IMAGES.maps == ((2, 9, 8), (3, 5, 4), (3, 3, 2), (3, 2, 1))
    features = network.read_features(torch.randn(6, 2, 9, 8))
    assert features.shape == (6, IMAGES.features)
    assert network(torch.randn(6, 2, 9, 8)).shape == (6, 4)


def test_norms_at_the_start_do_not_turn_directions():
    small, large = (
        initial_classifier_weights(DENSE.with_(start_norm=n), seed=2) for n in (1, 30)
    )
    for one, other in zip(small, large, strict=True):
        np.testing.assert_allclose(30 * one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"inputs": 5}, "inputs is 5: pass tuple"),
        ({"inputs": ()}, r"inputs is \(\)"),
        ({"inputs": (3, 0)}, "from 1 up"),
        ({"family": "convolutional"}, r"pass \(channels, height, width\)"),
        ({"family": "dence"}, "did you mean 'dense'"),
        ({"norm": "layer"}, "unknown norm 'layer'"),
        ({"start_norm": 0.0}, "start_norm is 0.0: pass a positive number"),
        ({"start_norm": float("nan")}, "start_norm is nan"),
        ({"outputs": 0}, "outputs is 0"),
        ({"depth": True}, "depth is True"),
    ],
)
def test_what_cannot_be_built_is_refused(changes, hint):
    with pytest.raises(TheodoliteError, match=hint):
        DENSE.with_(**changes)


def test_samples_of_another_shape_are_refused():
    with pytest.raises(
        ConfigError, match=r"samples of shape \(7,\): .* wants \(2, 3\)"
    ):
        build(DENSE, seed=0)(torch.ones(2, 7))
