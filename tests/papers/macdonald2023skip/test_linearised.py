"""Jacobians of networks of two blocks, against products through autograd's graph."""

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, TwoBlockBlueprint
from theodolite.instruments import BlockJacobian
from theodolite.networks import build
from theodolite_papers.macdonald2023skip.shared import linearised
from theodolite_papers.macdonald2023skip.shared.linearised import Linearised
from theodolite_papers.macdonald2023skip.shared.spectra import (
    descend,
    few_images,
    read_spectra,
)

SMALL = {"side": 8, "stem_kernel": 3, "stem_pool": 1, "kernel": 3, "stride": 2}
PLANS = {
    "chain": TwoBlockBlueprint(skips=False, **SMALL),
    "res": TwoBlockBlueprint(**SMALL),
    "average": TwoBlockBlueprint(added=1.0),
    "random": TwoBlockBlueprint(added=0.5, isometry="random", **SMALL),
    "branch": TwoBlockBlueprint(added=2.0, place="branch", **SMALL),
}
SAMPLES = 4


def moved(plan, dtype=torch.float64):
    """A network away from its start, where norms have slopes and shifts."""
    network = build(plan, seed=0, dtype=torch.float64)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            noise = torch.randn(parameter.shape, generator=draw, dtype=torch.float64)
            parameter.add_(0.1 * noise)
    x = torch.randn(SAMPLES, 1, plan.side, plan.side, generator=draw).double()
    return network.to(dtype), x.to(dtype)


@pytest.mark.parametrize("name", PLANS)
def test_the_composite_is_autograd_s(name):
    network, x = moved(PLANS[name])
    operator = BlockJacobian(network, x, block=("keeping", "head"), norm_mode="batch")
    found = Linearised.of(network, x).composite().numpy()
    ours, theirs = (
        np.linalg.svd(matrix, compute_uv=False) for matrix in (found, operator.dense())
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * theirs[0])


@pytest.mark.parametrize("name", PLANS)
def test_rows_of_a_sample_s_blocks_are_autograd_s(name):
    """Statistics are held, and samples do not act on one another."""
    network, x = moved(PLANS[name])
    operator = BlockJacobian(
        network, x, block=("keeping", "shrinking"), norm_mode="batch", coupled=False
    )
    blocks = Linearised.of(network, x).blocks(2)
    features, inputs = blocks.shape[1:]
    second = operator.rows(torch.arange(features, 2 * features))
    theirs = torch.linalg.svdvals(second.reshape(features, SAMPLES, inputs)[:, 1])
    ours = torch.linalg.svdvals(blocks[1])
    gap = float((ours - theirs).abs().max())
    assert gap <= 1e-12 * float(theirs[0])
    assert float(theirs[0]) > 0.1


@pytest.mark.parametrize("name", ["chain", "average"])
def test_single_precision_is_within_its_bound(name):
    double, x = moved(PLANS[name])
    exact = read_spectra(double, x, samples=2)
    rounded = read_spectra(double.float(), x.float(), samples=2)
    for metric, spectrum in rounded.items():
        gap = abs(spectrum.values - exact[metric].values).max()
        assert gap <= spectrum.error < 1e-3 * spectrum.values[-1]
        assert exact[metric].error < 1e-6 * spectrum.error


def test_statistics_of_the_batch_make_a_difference():
    """Held in place of coupled, as a rival would have it, the composite is another."""
    network, x = moved(PLANS["average"])
    found = Linearised.of(network, x)
    rows = found.readout.reshape(SAMPLES * 10, SAMPLES, -1)
    held = found._pulled(rows, coupled=False).flatten(1)
    assert float((held - found.composite()).abs().max()) > 1e-3


def test_descent_is_plain_gradient_descent():
    plan = PLANS["res"]
    drawn = few_images("digits", 6, seed=0)
    found = descend(
        build(plan, seed=0),
        drawn.images,
        drawn.labels,
        rate=0.1,
        steps=3,
        spectra_at=(0, 2),
        samples=1,
        parameters_at=(1,),
    )
    network = build(plan, seed=0)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    x, y = torch.tensor(drawn.images).float(), torch.tensor(drawn.labels)
    losses = []
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(network(x), y)
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(found.losses, losses, rtol=1e-5)
    counts = {name: len(spectra) for name, spectra in found.spectra.items()}
    assert counts == {"composite": 2, "blocks": 2}
    assert list(found.parameters) == [1]


def test_images_are_drawn_by_seed_and_standardised():
    one, same, other = (few_images("digits", 500, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.images, same.images)
    assert (one.images != other.images).any()
    assert abs(one.images.mean()) < 0.05
    assert one.images.std() == pytest.approx(1, abs=0.05)
    raw = few_images("digits", 20, seed=0, standardised=False).images
    assert (raw.min(), raw.max()) == (0, 1)


def test_what_are_no_few_grey_images_is_refused():
    with pytest.raises(ConfigError, match="samples is 1: digits has 1437"):
        few_images("digits", 1, seed=0)
    with pytest.raises(ConfigError, match="grey images are wanted"):
        few_images("gaussians", 4, seed=0)


@pytest.mark.parametrize(
    ("used", "band"), [((), (0, 1)), ((2,), (2, 3)), ((1, 3), (1, 4))]
)
def test_rows_without_an_entry_are_cut_off(used, band):
    columns = torch.zeros(5, 2)
    columns[list(used), 1] = 1.0
    found, kept = linearised._band(columns)
    assert found == slice(*band)
    assert kept.tolist() == columns[found].tolist()
