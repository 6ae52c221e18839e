"""Sizes of the layers at initialisation: the wide limit against wide networks."""

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, LayerwiseBlueprint
from theodolite.networks import build
from theodolite.theory import scalar_norm_sizes

DEPTH, WIDTH = 4, 512


@pytest.fixture(scope="module")
def measured():
    plan = LayerwiseBlueprint(inputs=WIDTH, width=WIDTH, depth=DEPTH, classes=1)
    network = build(plan, seed=0, dtype=torch.float32)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(WIDTH, WIDTH, generator=draw)
    squares = []
    with torch.no_grad():
        for layer in network.layers:
            x = layer(x)
            squares.append(float((x**2).mean()))
    return np.array(squares)


def test_wide_networks_agree_with_the_limit(measured):
    """Networks of this width are within a few parts in a hundred of it."""
    np.testing.assert_allclose(scalar_norm_sizes(DEPTH).square, measured, rtol=0.05)


def test_growth_by_one_and_a_limit_without_means_are_rejected(measured):
    rival = np.pi / (np.pi - 1) * np.arange(1, DEPTH + 1)
    assert abs(measured[1:] / rival[1:] - 1).min() > 0.5
    assert abs(measured[1:] - measured[:-1] - 1).min() > 1


def test_the_first_layer_in_closed_form():
    sizes = scalar_norm_sizes(1)
    assert sizes.square[0] == pytest.approx(np.pi / (np.pi - 1), rel=1e-12)
    assert sizes.deviation[0] == pytest.approx(np.sqrt((1 - 1 / np.pi) / 2), rel=1e-12)
    assert sizes.overlap[0] == pytest.approx(1 / (np.pi - 1), rel=1e-12)


@pytest.mark.parametrize("depth", [0, -1, True])
def test_a_bad_depth_is_refused(depth):
    wanted = "pass a whole number" if depth is True else "whole number from 1 up"
    with pytest.raises(ConfigError, match=wanted):
        scalar_norm_sizes(depth)
