"""Operators leave the model as found: after a product, and after an exception."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES, in_modes
from tests.instruments.agreement import cut, near
from tests.instruments.test_preservation import portrait, prepare, without_versions
from tests.oracles import looped_hessian
from theodolite.core import MeasurementError, NormMode
from theodolite.instruments import GaussNewton, HalfSquareLoss, Hessian, Jacobian


def products(operator):
    operator @ torch.ones(operator.shape[1], dtype=operator.torch_dtype)
    operator.T @ torch.ones(operator.shape[0], dtype=operator.torch_dtype)


@in_modes
def test_left_as_found(case, mode):
    model, batch, loss = prepare(case)
    before = portrait(model)
    given = {"norm_mode": mode}
    products(Hessian(model, batch, loss=loss, **given))
    products(Hessian(model, batch, loss=loss, micro_batch=4, **given))
    products(GaussNewton(model, cut(batch, 2), loss=loss, micro_batch=4, **given))
    products(Jacobian(model, batch, **given))
    # Not even buffers were written to.
    assert portrait(model) == before


def test_left_as_found_when_opened_twice_at_once():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).double()
    batch = torch.randn(8, 3).double(), torch.randn(8, 1).double()
    buffers, before = list(model.buffers()), portrait(model)
    operator = Hessian(model, batch, loss=HalfSquareLoss(), norm_mode="batch")
    with operator.curves() as curves:
        products(operator)
        assert len(list(curves)) == 1
    assert all(a is b for a, b in zip(model.buffers(), buffers, strict=True))
    assert portrait(model) == before


@pytest.mark.parametrize("mode", list(NormMode))
@pytest.mark.parametrize("fail_at", [1, 2, 4, 9])
def test_left_as_found_after_an_exception(mode, fail_at):
    case = next(c for c in CASES if c.name == "conv_bn_resnet")
    model, batch, loss = prepare(case)
    before = portrait(model)
    runs = []

    def failing(network, given):
        value = loss(network(given[0]), given[1])
        runs.append(1)
        if len(runs) >= fail_at:
            torch.rand(3)
            np.random.rand(3)  # noqa: NPY002
            network.register_forward_pre_hook(lambda *_: None)
            raise MeasurementError("wanted")
        return value

    def measure():
        for size in (None, 2, 3):
            settings = {"norm_mode": mode, "micro_batch": size}
            products(Hessian(model, batch, loss=failing, **settings))

    with pytest.raises(MeasurementError, match="wanted"):
        measure()
    assert portrait(model) == before


class Writer(nn.Module):
    """Writes where it should not: to a weight, a buffer held twice, a gradient."""

    def __init__(self, what):
        super().__init__()
        self.layer = nn.Linear(3, 3, dtype=torch.float64)
        self.register_buffer("count", torch.zeros(3, dtype=torch.float64))
        self.what, self.held = what, [self.count]

    def forward(self, x):
        with torch.no_grad():
            if self.what == "weight":
                self.layer.weight.clamp_(-0.1, 0.1)
            elif self.what == "data":
                self.layer.weight.data = self.layer.weight.data.clamp(-0.1, 0.1)
            elif self.what == "buffer":
                self.held[0].add_(1)
            elif self.layer.weight.grad is not None:
                self.layer.weight.grad.add_(1)
        return self.layer(x)


@pytest.mark.parametrize("what", ["weight", "data", "buffer", "gradient"])
def test_models_that_write_are_watched_more_closely(what):
    model = Writer(what)
    model.layer.weight.grad = torch.ones(3, 3, dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64)
    before = portrait(model)
    operator = Hessian(model, (x, x), loss=HalfSquareLoss(), norm_mode="batch")
    products(operator)
    operator.close()
    products(operator)
    assert without_versions(portrait(model)) == without_versions(before)


def test_spectral_norm_starts_from_the_same_state():
    model = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).double()
    x = torch.randn(4, 3, dtype=torch.float64)
    before = portrait(model)
    operator = Hessian(model, (x, x), loss=HalfSquareLoss(), norm_mode="batch")
    first = operator.dense()
    operator.close()
    near(operator.dense(), first)
    assert portrait(model) == before


@pytest.mark.parametrize("given", ["functional", "module", "cell", "numpy"])
def test_randomness_is_refused_or_fixed(given):
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            if given == "module":
                self.drop = nn.Dropout()
            if given == "cell":
                self.cell = nn.GRU(3, 3, num_layers=2, dropout=0.5)

        def forward(self, x):
            z = torch.tanh(self.layer(x))
            if given == "functional":
                return nn.functional.dropout(z)
            if given == "cell":
                return self.cell(z[None])[0][0]
            if given == "numpy":
                return z * float(np.random.rand())  # noqa: NPY002
            return self.drop(z)

    model = Noisy().double()
    x = torch.randn(6, 3, dtype=torch.float64)
    batch, loss = (x, x), HalfSquareLoss()
    with pytest.raises(MeasurementError, match="random"):
        Hessian(model, batch, loss=loss, norm_mode="batch")
    size = sum(parameter.numel() for parameter in model.parameters())
    vectors = torch.randn(size, 3, dtype=torch.float64)
    before = portrait(model)
    fixed = {"loss": loss, "norm_mode": "batch", "randomness": "fixed"}
    operator = Hessian(model, batch, **fixed)
    first = operator @ vectors
    near(vectors.T @ first, first.T @ vectors)
    operator.close()
    near(operator @ vectors, first)
    near(Hessian(model, batch, **fixed) @ vectors, first)
    other = Hessian(model, batch, seed=1, **fixed) @ vectors
    assert (other - first).abs().max() > 1e-3 * first.abs().max()
    # Each batch draws for itself, and the same whenever it is met.
    parts = Hessian(model, cut(batch, 3), graph_bytes=12_000, **fixed)
    near(vectors.T @ (parts @ vectors), (vectors.T @ (parts @ vectors)).T)
    for settings, data in (
        ({"micro_batch": 2}, batch),
        ({"norm_mode": "full"}, cut(batch, 3)),
    ):
        with pytest.raises(MeasurementError, match="draw others"):
            Hessian(model, data, **{**fixed, **settings})
    assert portrait(model) == before


def test_a_state_that_no_one_resets_is_noticed():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.calls = nn.Linear(3, 3), 0

        def forward(self, x):
            self.calls += 1
            return self.layer(x) * self.calls

    x = torch.randn(4, 3)
    with pytest.raises(MeasurementError, match="same seed differ"):
        Hessian(Counting(), (x, x), loss=HalfSquareLoss(), norm_mode="batch")


def test_under_inference_mode_and_no_grad():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    exact = looped_hessian(model, batch, loss)
    for around in (torch.no_grad(), torch.inference_mode()):
        with around:
            operator = Hessian(model, batch, loss=loss, norm_mode="batch")
            near(operator.dense(), exact)


def test_a_compiled_model_is_measured_as_what_it_was_made_from():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    exact = looped_hessian(model, batch, loss)
    compiled = torch.compile(model, backend="eager")
    assert "torch._dynamo" in sys.modules
    operator = Hessian(compiled, batch, loss=loss, norm_mode="batch")
    assert operator.names[0] == "0.weight"
    near(operator.dense(), exact)

    def by_function(_, given):
        return loss(compiled(given[0]), given[1])

    near(Hessian(compiled, batch, loss=by_function, norm_mode="batch").dense(), exact)


@pytest.mark.gpu
def test_on_cuda():
    for case in CASES:
        model, batch, loss = case.make()
        exact = Hessian(model, batch, loss=loss, norm_mode="batch").dense()
        there = tuple(part.cuda() for part in batch)
        with pytest.raises(MeasurementError, match="move the batch"):
            Hessian(model, there, loss=loss, norm_mode="batch")
        model = model.cuda()
        for mode, size in (("batch", None), ("full", 2)):
            operator = Hessian(
                model, there, loss=loss, norm_mode=mode, micro_batch=size
            )
            vector = torch.randn(operator.shape[0], dtype=torch.float64)
            near((operator @ vector.cuda()).cpu(), exact @ vector.numpy())
