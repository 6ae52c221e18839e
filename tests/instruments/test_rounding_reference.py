"""A reference for one product is taken in parts, but only where that is the same."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from theodolite.core import MeasurementError
from theodolite.instruments import Hessian
from theodolite.instruments.operators import (
    loss_hessian,
    rounding_noise,
    rounding_reference,
)
from theodolite.instruments.passes.forecast import float64_bytes
from theodolite.instruments.passes.set_up import GraphMemory

SAMPLES = 64


def contrasted(outputs, labels):
    """Supervised contrast: each sample beside all others, those of its class above.

    Samples without another of their class count nothing, such as the first few here.
    """
    codes = nn.functional.normalize(outputs, dim=1)
    itself = torch.eye(len(codes), dtype=torch.bool)
    alike = (codes @ codes.T / 0.5).masked_fill(itself, -math.inf)
    logs = alike.log_softmax(1).masked_fill(itself, 0.0)
    pairs = (labels[:, None] == labels) & ~itself
    return -(logs * pairs).sum(1).div(pairs.sum(1).clamp(min=1)).mean()


LOSSES = {"separable": nn.CrossEntropyLoss(), "coupled": contrasted}


def made(loss):
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 8))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(0.5 * torch.randn(weight.shape, generator=generator))
    x = torch.randn(SAMPLES, 4, generator=generator)
    batch = x, torch.arange(SAMPLES) % 8
    return Hessian(model, batch, loss=LOSSES[loss], norm_mode="eval", reduction="mean")


@pytest.fixture
def quarters(monkeypatch):
    """Return a way to have an operator's single products taken in four parts."""

    def quarter(operator):
        monkeypatch.setattr(loss_hessian, "_PART", operator.forecast_bytes // 4)
        return operator

    return quarter


@pytest.mark.parametrize(("loss", "cut"), [("separable", True), ("coupled", False)])
@pytest.mark.parametrize("used", [False, True])
def test_the_reference_is_cut_only_where_that_changes_nothing(
    loss, cut, used, quarters
):
    operator = quarters(made(loss))
    vector = torch.ones(operator.shape[1])
    if used:
        operator.matvec(vector)
    make = rounding_reference.rounding_reference
    once, whole = make(operator, once=True), make(operator)
    assert once is not None
    assert once.finer
    assert whole is not None
    assert whole.finer
    assert (max(once.operator.partition) <= SAMPLES // 4) is cut
    mine, exact = (t.operator.matvec(vector.double()) for t in (once, whole))
    assert_close(mine, exact, rtol=1e-10, atol=1e-12)
    assert_close(operator.matvec(vector).double(), mine, rtol=1e-4, atol=1e-5)


def test_samples_beyond_a_part_are_taken_one_by_one(monkeypatch):
    operator = made("separable")
    each = operator.forecast_bytes // SAMPLES
    monkeypatch.setattr(loss_hessian, "_PART", each // 2)
    found = rounding_reference.rounding_reference(operator, once=True)
    assert found is not None
    assert found.operator.partition == (1,) * SAMPLES


def test_a_reference_that_fits_in_parts_is_the_finer_one(monkeypatch, quarters):
    operator = quarters(made("separable"))
    room = float64_bytes(operator.shape[1], operator.forecast_bytes // 2)
    monkeypatch.setattr(rounding_reference, "available_bytes", lambda _: room)
    make = rounding_reference.rounding_reference
    once, whole = make(operator, once=True), make(operator)
    assert once is not None
    assert once.finer
    assert whole is not None
    assert not whole.finer


def test_bounds_stay_where_there_is_a_reference_for_a_single_product_only(
    monkeypatch, quarters
):
    operator = quarters(made("separable"))
    vectors = torch.eye(operator.shape[1])[:4]
    # Two that will do with any bound, and two that are to be measured.
    values, enough = np.zeros(4), np.array([np.inf, np.inf, 0.0, 0.0])
    wanted = rounding_noise.eigenvalue_noise(operator, values, vectors, enough)
    make = operator.remaking

    def cut_only(model, batches, loss, graph_bytes, pass_bytes):
        if graph_bytes is None:
            raise MeasurementError("the whole does not fit")
        return make(model, batches, loss, graph_bytes, pass_bytes)

    monkeypatch.setattr(operator, "remaking", cut_only)
    before = operator.passes
    found = rounding_noise.eigenvalue_noise(operator, values, vectors, enough)
    assert found is not None
    assert wanted is not None
    assert operator.passes - before == 6
    # Of parts the twin's own rounding differs, far below what is measured.
    np.testing.assert_allclose(found.norms, wanted.norms, rtol=1e-5)
    np.testing.assert_allclose(found.shifts, wanted.shifts, rtol=1e-5)


class Cube(torch.autograd.Function):
    """Somebody's function, whose backward could be in any precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * grad * x**2


@pytest.mark.parametrize(("apply", "forecasts"), [(torch.tanh, 0), (Cube.apply, 1)])
def test_a_graph_is_built_beside_only_to_see_what_others_derive(
    monkeypatch, apply, forecasts
):
    model, batch = nn.Linear(3, 2), (torch.randn(4, 3), torch.randn(4, 2))
    operator = Hessian(model, batch, loss=lambda m, b: apply(m(b[0]) - b[1]).mean())
    operator @ torch.ones(operator.shape[1])
    calls, predict = [], GraphMemory.predict
    monkeypatch.setattr(
        GraphMemory, "predict", lambda *given: calls.append(1) or predict(*given)
    )
    reference = rounding_reference.rounding_reference(operator)
    assert reference is not None
    assert reference.finer
    assert len(calls) == forecasts
