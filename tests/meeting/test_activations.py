"""The two tables of activations, NumPy and torch, are the same functions."""

import numpy as np
import pytest
import torch

from theodolite.core import ACTIVATIONS
from theodolite.networks.shortcut import torch_activation
from theodolite.theory import activation

SPECS = [*(name for name in ACTIVATIONS if name != "polynomial"), "polynomial:1.5,1,-2"]


@pytest.mark.parametrize("spec", SPECS)
def test_value_and_slope(spec):
    z = torch.linspace(-3, 3, 41, dtype=torch.float64)[:-1].requires_grad_()
    value = torch_activation(spec)(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    grid = z.detach().numpy()
    np.testing.assert_allclose(activation(spec).value(grid), value.detach(), atol=1e-14)
    away = np.abs(grid) > 1e-9
    np.testing.assert_allclose(
        activation(spec).slope(grid)[away], slope.numpy()[away], atol=1e-14
    )


@pytest.mark.parametrize("spec", [s for s in SPECS if s != "relu"])
def test_derivatives_at_zero(spec):
    z = torch.zeros((), dtype=torch.float64, requires_grad=True)
    value = torch_activation(spec)(z)
    (slope,) = torch.autograd.grad(value, z, create_graph=True)
    curvature = 0.0
    if slope.requires_grad:
        (second,) = torch.autograd.grad(slope, z, allow_unused=True)
        curvature = 0.0 if second is None else float(second)
    table = activation(spec)
    assert table.at_zero == pytest.approx(float(value.detach()), abs=1e-15)
    assert table.slope_at_zero == pytest.approx(float(slope.detach()), abs=1e-15)
    assert table.curvature_at_zero == pytest.approx(curvature, abs=1e-15)


def test_slope_of_relu_is_that_of_its_best_line():
    for delta in (0.1, 3.0):
        z = np.linspace(-delta, delta, 100_001)
        line = np.polynomial.Polynomial.fit(z, np.maximum(z, 0), 1).convert()
        assert line.coef[1] == pytest.approx(activation("relu").slope_at_zero)
        curve = np.polynomial.Polynomial.fit(z, np.maximum(z, 0), 2).convert()
        assert 2 * curve.coef[2] == pytest.approx(15 / (16 * delta), rel=1e-3)
    assert activation("relu").curvature_at_zero is None
