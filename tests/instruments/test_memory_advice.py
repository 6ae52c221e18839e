"""Limits of memory are bytes, and a message names the one that helps."""

import numpy as np
import pytest
import torch

from tests.cases import CASES
from theodolite.core import ConfigError, MeasurementError
from theodolite.instruments import (
    BlockJacobian,
    GaussNewton,
    Hessian,
    Jacobian,
    Operator,
    TangentKernel,
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
from theodolite.instruments.passes.set_up import GraphMemory

LIMITS = ("graph_bytes", "basis_bytes", "matrix_bytes")
PRODUCTS = {"method": "products"}


def mlp():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    return model, batch, {"loss": loss, "norm_mode": "eval"}


def on_loss(instrument, **settings):
    """Call an instrument of the loss with a limit."""

    def call(**limit):
        model, batch, given = mlp()
        return instrument(model, batch, **given, **settings, **limit)

    return call


def on_outputs(instrument, **settings):
    """Call an instrument of the outputs with a limit."""

    def call(**limit):
        model, batch, _ = mlp()
        return instrument(model, batch, norm_mode="eval", **settings, **limit)

    return call


def dense_of(make):
    return lambda **limit: make().dense(**limit)


def coupled_hessian(**limit):
    model, batch, loss = next(c for c in CASES if c.name == "in_place_relu").make()
    given = {"loss": loss, "norm_mode": "full", "micro_batch": 4}
    return hessian(model, batch, **given, **limit)


CALLS = [
    *(("graph_bytes", on_loss(kind)) for kind in (Hessian, GaussNewton)),
    *(("graph_bytes", on_outputs(kind)) for kind in (Jacobian, TangentKernel)),
    *(("graph_bytes", on_loss(kind)) for kind in (trace, condition, hessian, spectrum)),
    ("graph_bytes", on_loss(sharpness_along)),
    ("graph_bytes", on_loss(spectral_density)),
    ("graph_bytes", on_loss(extreme_eigenvalues)),
    *(("matrix_bytes", on_loss(kind)) for kind in (hessian, spectrum)),
    ("matrix_bytes", coupled_hessian),
    ("matrix_bytes", on_outputs(tangent_kernel)),
    ("matrix_bytes", dense_of(on_loss(Hessian))),
    ("matrix_bytes", dense_of(on_outputs(BlockJacobian, block="0"))),
    *(
        ("matrix_bytes", on_outputs(singular_values, block="0", method=method))
        for method in ("dense", "blocks")
    ),
    ("basis_bytes", on_outputs(singular_values, block="0", method="quadrature")),
    ("basis_bytes", on_loss(extreme_eigenvalues, **PRODUCTS)),
    ("basis_bytes", on_loss(condition, **PRODUCTS)),
    ("basis_bytes", lambda **limit: on_loss(sharpness_along)(**limit)(0)),
    (
        "basis_bytes",
        lambda **x: extreme_eigenvalues(on_loss(Hessian)(), **PRODUCTS, **x),
    ),
]


@pytest.mark.parametrize(("limit", "call"), CALLS)
def test_raising_what_the_message_names_helps(limit, call):
    with pytest.raises(MeasurementError, match=f"raise {limit}") as said:
        call(**{limit: 64})
    assert not any(other in str(said.value) for other in LIMITS if other != limit)
    assert "0.0 GiB" not in str(said.value)
    assert "allowed are 0.0:" not in str(said.value)
    call(**{limit: 2**30})


@pytest.mark.parametrize("value", ["1GB", float("nan"), True, -1, -1e9, 1.5])
@pytest.mark.parametrize(("limit", "call"), CALLS)
def test_a_limit_is_a_whole_number_of_bytes(limit, call, value):
    unit = " of b" if value == -1 else ""  # the others are no whole numbers at all
    with pytest.raises(ConfigError, match=f"{limit} is .*whole number{unit}") as said:
        call(**{limit: value})
    assert "\n" not in str(said.value)


def test_numbers_of_numpy_and_none_at_all_are_limits():
    on_loss(Hessian)(graph_bytes=np.int32(2**30))
    with pytest.raises(MeasurementError, match="raise graph_bytes"):
        on_loss(Hessian)(graph_bytes=0)


class Twice(Operator):
    """Two on the diagonal, too large to be formed."""

    symmetric = True
    torch_dtype, device = torch.float32, torch.device("cpu")
    shape = (30_000, 30_000)

    def product(self, vector):
        return 2 * vector


@pytest.mark.parametrize("solve", [trace, diagonal, spectral_density, index])
def test_a_matrix_that_no_limit_admits_advises_products(solve):
    few = {"steps": 4} if solve in (spectral_density, index) else {}
    with pytest.raises(MeasurementError, match="pass method='products'") as said:
        solve(Twice(), method="dense", **few)
    assert not any(limit in str(said.value) for limit in LIMITS)
    solve(Twice(), **PRODUCTS, **few)


def test_a_spectrum_that_no_limit_admits_advises_a_density():
    with pytest.raises(MeasurementError, match="ask for a density"):
        spectrum(Twice())
    assert spectral_density(Twice(), steps=4).nodes.size


def test_a_known_peak_is_taken_in_place_of_a_forecast(monkeypatch):
    monkeypatch.delattr(GraphMemory, "saved")
    model, batch, settings = mlp()
    operator = Hessian(model, batch, **settings, pass_bytes=2**20)
    assert operator.forecast_bytes == 2**20
    with pytest.raises(MeasurementError, match="raise graph_bytes"):
        Hessian(model, batch, **settings, pass_bytes=2**30, graph_bytes=2**20)
    with pytest.raises(ConfigError, match="pass_bytes is -1"):
        Hessian(model, batch, **settings, pass_bytes=-1)
