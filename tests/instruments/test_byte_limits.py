"""Limits of memory are whole numbers of bytes, whoever takes them."""

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core import ConfigError, MeasurementError
from theodolite.instruments import (
    BlockJacobian,
    GaussNewton,
    Hessian,
    Jacobian,
    condition,
    diagonal,
    extreme_eigenvalues,
    hessian,
    index,
    sharpness_along,
    singular_values,
    spectral_density,
    spectrum,
    tangent_kernel,
    trace,
)

X, Y = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3), torch.arange(4) % 2
OF_LOSSES = {
    "graph_bytes": [Hessian, GaussNewton, hessian, trace],
    "matrix_bytes": [hessian, spectrum],
    "basis_bytes": [
        condition,
        diagonal,
        extreme_eigenvalues,
        index,
        sharpness_along,
        spectral_density,
        trace,
    ],
}
CALLS = [(name, call) for name, calls in OF_LOSSES.items() for call in calls]


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double()


def refused(call, name, value):
    with pytest.raises(ConfigError, match=f"{name} is .*whole number of bytes") as said:
        call(**{name: value})
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("value", ["1GB", float("nan"), True, -1, -1e9, 1.5])
@pytest.mark.parametrize(("name", "call"), CALLS)
def test_of_losses(name, call, value):
    settings = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    refused(lambda **given: call(model(), (X, Y), **settings, **given), name, value)


@pytest.mark.parametrize("value", ["1GB", float("nan"), None, -1])
def test_of_outputs(value):
    def values(**given):
        return singular_values(model(), X, block="0", norm_mode="eval", **given)

    refused(values, "matrix_bytes", value)
    refused(values, "basis_bytes", value)
    block = BlockJacobian(model(), X, block="0", norm_mode="eval")
    refused(block.dense, "matrix_bytes", value)
    jacobian = Jacobian(model(), X, norm_mode="eval")
    refused(jacobian.dense, "matrix_bytes", value)

    def kernel(**given):
        return tangent_kernel(model(), X, norm_mode="eval", **given)

    refused(kernel, "matrix_bytes", value)


def test_numbers_of_numpy_and_none_at_all_are_limits():
    settings = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    Hessian(model(), (X, Y), **settings, graph_bytes=np.int32(2**30))
    with pytest.raises(MeasurementError, match="raise graph_bytes"):
        Hessian(model(), (X, Y), **settings, graph_bytes=0)
