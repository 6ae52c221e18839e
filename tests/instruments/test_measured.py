"""Instruments of curvature take models, problems and operators alike."""

import inspect
from typing import Unpack

import pytest
import torch

from tests.cases import CASES
from theodolite.core import ConfigError, MeasurementError
from theodolite.instruments import (
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    Hessian,
    Jacobian,
    Problem,
    condition,
    diagonal,
    extreme_eigenvalues,
    hessian,
    index,
    memory_forecast,
    sharpness_along,
    spectral_density,
    spectrum,
    trace,
)
from theodolite.instruments.curvature.model_instruments import (
    CurvatureSettings,
    measured,
)

INSTRUMENTS = [trace, diagonal, spectral_density, extreme_eigenvalues]
INSTRUMENTS += [index, condition, hessian, spectrum, sharpness_along, memory_forecast]
OPERATORS = [Hessian, GaussNewton, Fisher, EmpiricalFisher]


@pytest.mark.parametrize("call", INSTRUMENTS + OPERATORS)
def test_every_setting_of_a_problem_is_in_the_signature(call):
    shown = inspect.signature(call).parameters
    for setting in inspect.signature(Problem).parameters.values():
        if setting.name not in ("model", "batches"):
            given = shown[setting.name].default
            assert given == setting.default or setting.name == "seed"
            assert shown[setting.name].kind == setting.kind
    assert "settings" not in shown
    assert "settings: Those of :class:`Problem`" in call.__doc__


def mlp():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    return model, batch, {"loss": loss, "norm_mode": "eval"}


def test_arguments_reach_the_operator_and_the_solver():
    model, batch, given = mlp()
    name = next(name for name, _ in model.named_parameters())
    found = trace(
        model,
        batch,
        **given,
        params=[name],
        micro_batch=3,
        method="products",
        max_matvecs=8,
        level=0.5,
        seed=7,
    )
    with Hessian(model, batch, **given, params=[name], micro_batch=3, seed=7) as made:
        same = trace(made, method="products", max_matvecs=8, level=0.5, seed=7)
    assert (found.trace, found.trace_high) == (same.trace, same.trace_high)
    assert (found.seed, found.level, found.cost.passes) == (7, 0.5, same.cost.passes)
    with pytest.raises(MeasurementError, match="'nowhere'"):
        trace(model, batch, **given, params=["nowhere"])


def test_misuse_names_the_instrument_or_the_option():
    model, batch, given = mlp()
    with pytest.raises(MeasurementError, match="no loss was given and the model ret"):
        trace(model, batch, norm_mode="eval")
    with pytest.raises(TypeError, match=r"trace: .*micro_bach"):
        trace(model, batch, **given, micro_bach=3)
    with pytest.raises(TypeError, match=r"Jacobian: .*loss"):
        Jacobian(model, batch, **given)
    with pytest.raises(MeasurementError, match="a batch of type NoneType came with"):
        trace(model, **given)
    with pytest.raises(MeasurementError, match="model is 3: pass Module"):
        trace(3, batch, **given)
    for measure in (trace, spectrum, hessian, sharpness_along):
        with pytest.raises(ConfigError, match="pass them where the operator is made"):
            measure(Hessian(model, batch, **given), micro_batch=3)


def test_graphs_are_let_go_also_after_an_error():
    model, batch, given = mlp()
    made = []

    def keep(*args, **kwargs):
        made.append(Hessian(*args, **kwargs))
        return made[0]

    @measured
    def fail(model, batches=None, *, seed=0, **settings: Unpack[CurvatureSettings]):
        model @ torch.ones(model.shape[1], dtype=model.torch_dtype)
        assert len(model._prepared.graphs) == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(model, batch, **given, operator=keep)
    assert len(made[0]._prepared.graphs) == 0


def test_another_operator_can_be_measured():
    model, batch, given = mlp()
    made = trace(model, batch, **given, operator=GaussNewton)
    assert made.trace == trace(GaussNewton(model, batch, **given)).trace
    assert made.trace != trace(model, batch, **given).trace
