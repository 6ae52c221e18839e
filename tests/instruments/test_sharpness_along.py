"""Sharpness along a run: right at each step, cheaper when warm, model as found."""

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core import ConfigError, Status
from theodolite.instruments import hessian, sharpness_along


def network():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)).double()
    x = torch.randn(20, 4).double()
    return model, (x, torch.sin(x[:, :2])), nn.MSELoss()


def train(model, batch, loss, steps, rate, probe=None, exact=None):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for step in range(steps):
        if probe is not None:
            probe(step)
        if exact is not None:
            matrix = hessian(model, batch, loss=loss, norm_mode="eval").matrix
            exact.append(np.linalg.eigvalsh(matrix)[::-1][:2])
        optimiser.zero_grad()
        loss(model(batch[0]), batch[1]).backward()
        optimiser.step()


def test_every_step_agrees_with_the_dense_hessian():
    model, batch, loss = network()
    probe = sharpness_along(model, batch, loss=loss, norm_mode="eval", k=2, tol=1e-4)
    exact = []
    train(model, batch, loss, 12, 0.5, probe, exact)
    reading = probe.reading()
    exact = np.array(exact)
    assert np.ptp(exact[:, 0]) > 0.05 * exact[0, 0]  # it did move
    np.testing.assert_allclose(reading.eigenvalues, exact, rtol=1e-4)
    np.testing.assert_array_less(
        np.abs(reading.eigenvalues - exact), reading.errors + 1e-13
    )
    assert reading.status is Status.CONVERGED
    assert reading.eigenvalues.shape == (12, 2)
    np.testing.assert_array_less(reading.sharp_errors, 1.01e-4 * reading.eigenvalues)


def test_a_warm_start_pays():
    model, batch, loss = network()
    probe = sharpness_along(model, batch, loss=loss, norm_mode="eval")
    train(model, batch, loss, 15, 0.1, probe)
    products = probe.reading().products
    assert products[1:].mean() < 0.7 * products[0]


def test_training_is_not_disturbed():
    watched, batch, loss = network()
    probe = sharpness_along(watched, batch, loss=loss, norm_mode="eval", every=3)
    train(watched, batch, loss, 10, 0.1, probe)
    alone, batch, loss = network()
    train(alone, batch, loss, 10, 0.1)
    for ours, theirs in zip(watched.parameters(), alone.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    reading = probe.reading()
    assert reading.steps.tolist() == [0, 3, 6, 9]
    row = reading.rows().only(quantity="eigenvalues", step=6, rank=0)
    assert row["value"] == reading.eigenvalues[2, 0]
    assert row["error"] == reading.errors[2, 0]
    assert reading.cost.passes == reading.products.sum()


def test_a_direction_that_takes_the_lead_is_found():
    # Curvatures 1 and 10 change places between steps, with eigenvectors fixed.
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    model.a = nn.Parameter(torch.zeros(30, dtype=torch.float64))
    curvature = torch.linspace(0.1, 1, 30).double()

    def loss(network, batch):
        return (curvature * network.a.square()).sum() / 2 + network.weight.sum()

    probe = sharpness_along(model, None, loss=loss, norm_mode="eval", tol=1e-6)
    assert probe(0) == pytest.approx(1.0)
    curvature[3] = 10.0
    assert probe(1) == pytest.approx(10.0)
    curvature[3] = 0.0
    assert probe(2) == pytest.approx(1.0)


def test_same_seed_same_run():
    found = []
    for _ in range(2):
        model, batch, loss = network()
        probe = sharpness_along(model, batch, loss=loss, norm_mode="eval", seed=4)
        train(model, batch, loss, 3, 0.1, probe)
        found.append(probe.reading())
    np.testing.assert_array_equal(found[0].eigenvalues, found[1].eigenvalues)
    assert found[0].seed == 4


def test_misuse():
    model, batch, loss = network()
    with pytest.raises(ConfigError, match="every"):
        sharpness_along(model, batch, loss=loss, norm_mode="eval", every=0)
    probe = sharpness_along(model, batch, loss=loss, norm_mode="eval", every=2)
    assert probe(1) is None
    with pytest.raises(ConfigError, match="no step"):
        probe.reading()
    with pytest.raises(ConfigError, match="step is"):
        probe(-1)
