"""A system's derivative from its layers' formulas, and by autodiff."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.certificates.systems import built, systems
from theodolite.certificates import recognise
from theodolite.certificates.bounds import balls_about
from theodolite.core import AffineLayer, BatchNormLayer, NonlinearLayer, SystemBlueprint
from theodolite.networks import build
from theodolite.theory import (
    extent_of,
    input_jacobian,
    layer_bounds,
    layer_value,
    parameter_jacobian,
    system_bounds,
    system_jacobian,
)

QUICK = settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck)
)


def autodiff(network, x):
    parameters = list(network.parameters())
    rows = []
    for one in network(x).T.reshape(-1):
        parts = torch.autograd.grad(
            one, parameters, retain_graph=True, allow_unused=True
        )
        filled = [
            torch.zeros_like(p) if part is None else part
            for p, part in zip(parameters, parts, strict=True)
        ]
        rows.append(torch.cat([part.flatten() for part in filled]))
    return torch.stack(rows).numpy()


@QUICK
@given(systems(depth=3), st.integers(2, 3), st.integers(0, 2**31))
def test_formulas_are_autodiff(plan, samples, seed):
    network = built(plan, seed)
    x = torch.as_tensor(
        np.random.default_rng(seed).normal(size=(samples, *plan.shapes[0]))
    )
    weights = recognise(network, plan.shapes[0]).weights
    wanted = autodiff(network, x)
    result = system_jacobian(plan, weights, x.numpy())
    size = max(np.abs(wanted).max(), 1e-12)
    assert_allclose(result / size, wanted / size, atol=1e-10)


def test_a_missing_factor_is_detected():
    layers = (
        AffineLayer(into=3, out=3),
        NonlinearLayer(activation="tanh"),
        AffineLayer(into=3, out=2),
    )
    plan = SystemBlueprint(inputs=3, layers=layers)
    network, x = build(plan, seed=0), np.random.default_rng(0).normal(size=(4, 3))
    weights = recognise(network, (3,)).weights
    wanted = autodiff(network, torch.as_tensor(x))
    first = parameter_jacobian(layers[0], weights[0], x)
    last = np.kron(weights[2]["weight"], np.eye(4))
    rival = last @ first  # the slope of tanh left out
    assert np.abs(rival - wanted[:, :9]).max() > 0.1
    middle = input_jacobian(layers[1], {}, layer_value(layers[0], weights[0], x))
    slopes = np.diag(middle[:, [0, 1, 2], [0, 1, 2]].T.reshape(-1))
    assert_allclose(last @ slopes @ first, wanted[:, :9], atol=1e-12)


@pytest.mark.parametrize("statistics", ["batch", "held"])
def test_a_batch_norm_is_bounded_as_it_is_differentiated(statistics):
    layer = BatchNormLayer(features=3, eps=0.5, affine=True, statistics=statistics)
    rng = np.random.default_rng(1)
    weights = {"weight": rng.normal(size=3), "bias": rng.normal(size=3)}
    weights |= {"mean": rng.normal(size=3), "variance": rng.uniform(1, 2, size=3)}
    z = rng.normal(size=(5, 3))
    (ball,) = balls_about((layer,), (weights,), 0.0)
    bounds = layer_bounds(layer, extent_of(z), ball)
    value = layer_value(layer, weights, z)
    through = input_jacobian(layer, weights, z)
    if statistics == "held":
        through = through[0]
    assert np.linalg.norm(value) <= bounds.outputs.frobenius
    assert np.abs(value).max() <= bounds.outputs.entries
    assert np.linalg.norm(through, 2) <= bounds.input_slope
    own = parameter_jacobian(layer, weights, z)
    assert np.linalg.norm(own, 2) <= bounds.parameter_slope * (1 + 1e-12)


def test_bounds_of_a_system_hold_its_outputs():
    plan = SystemBlueprint(
        inputs=3,
        layers=(
            AffineLayer(into=3, out=4, parameterisation="entry_norm", eps=0.1),
            NonlinearLayer(activation="softplus"),
            AffineLayer(into=4, out=2, parameterisation="weight_norm", eps=0.1),
        ),
    )
    x = np.random.default_rng(2).normal(size=(5, 3))
    bounds = system_bounds(plan, extent_of(x))
    for seed in range(20):
        with torch.no_grad():
            y = built(plan, seed)(torch.as_tensor(x)).numpy()
        assert np.linalg.norm(y) <= bounds.outputs.frobenius
        assert np.linalg.norm(y, 2) <= bounds.outputs.spectral
        assert np.linalg.norm(y, axis=1).max() <= bounds.outputs.sample
        assert np.abs(y).max() <= bounds.outputs.entries
