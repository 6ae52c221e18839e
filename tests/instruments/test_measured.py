"""Instruments of the Hessian and the functions of operators behind them."""

import inspect

import pytest
import torch

from tests.cases import CASES
from theodolite.core import MeasurementError
from theodolite.instruments import (
    GaussNewton,
    Hessian,
    condition,
    condition_of_operator,
    density_of,
    diagonal,
    diagonal_of,
    extreme_eigenvalues,
    extremes_of,
    index,
    index_of_operator,
    spectral_density,
    trace,
    trace_of,
)
from theodolite.instruments.curvature.model_instruments import measured_by

PAIRS = [
    (trace, trace_of),
    (diagonal, diagonal_of),
    (spectral_density, density_of),
    (extreme_eigenvalues, extremes_of),
    (index, index_of_operator),
    (condition, condition_of_operator),
]
# What makes no sense before there is an operator.
OF_OPERATORS_ONLY = {"start", "graph_error", "graph_error_at"}


@pytest.mark.parametrize(("instrument", "solve"), PAIRS)
def test_an_instrument_offers_what_its_solver_takes(instrument, solve):
    offered = inspect.signature(instrument).parameters
    _, *settings = inspect.signature(solve).parameters.values()
    for setting in settings:
        if setting.name not in OF_OPERATORS_ONLY:
            assert offered[setting.name].default == setting.default
            assert offered[setting.name].annotation == setting.annotation


@pytest.mark.parametrize(("instrument", "solve"), PAIRS)
def test_further_options_are_typed_and_known_to_the_operator(instrument, solve):
    *_, options = inspect.signature(instrument).parameters.values()
    (known,) = options.annotation.__args__
    assert set(known.__annotations__) < set(inspect.signature(Hessian).parameters)
    for name in inspect.signature(Hessian).parameters:
        assert (
            name in known.__annotations__
            or name in inspect.signature(instrument).parameters
        )


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
        same = trace_of(made, method="products", max_matvecs=8, level=0.5, seed=7)
    assert (found.trace, found.trace_high) == (same.trace, same.trace_high)
    assert (found.seed, found.level, found.cost.passes) == (7, 0.5, same.cost.passes)
    with pytest.raises(MeasurementError, match="'nowhere'"):
        trace(model, batch, **given, params=["nowhere"])


def test_misuse_names_the_instrument_or_the_option():
    model, batch, given = mlp()
    with pytest.raises(TypeError, match=r"trace.*loss"):
        trace(model, batch, norm_mode="eval")
    with pytest.raises(TypeError, match="micro_bach"):
        trace(model, batch, **given, micro_bach=3)


def test_graphs_are_let_go_also_after_an_error():
    model, batch, given = mlp()
    made = []

    def keep(*args, **kwargs):
        made.append(Hessian(*args, **kwargs))
        return made[0]

    def fail(operator, *, seed):
        operator @ torch.ones(operator.shape[1], dtype=operator.dtype)
        assert len(operator._kept) == 1
        raise ZeroDivisionError

    def instrument(model, batches, *, loss, norm_mode, seed=0): ...

    with pytest.raises(ZeroDivisionError):
        measured_by(fail, operator=keep)(instrument)(model, batch, **given)
    assert len(made[0]._kept) == 0


def test_another_operator_can_be_measured():
    model, batch, given = mlp()

    @measured_by(trace_of, operator=GaussNewton)
    def gauss_newton_trace(model, batches, *, loss, norm_mode, seed=0): ...

    found = gauss_newton_trace(model, batch, **given)
    assert found.trace == trace_of(GaussNewton(model, batch, **given)).trace
    assert found.trace != trace(model, batch, **given).trace
