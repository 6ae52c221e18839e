"""Products of several vectors at once are those of each alone."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.cases import CASES
from theodolite.instruments import GaussNewton, Hessian, MatrixOperator, trace
from theodolite.instruments.operators import loss_hessian

CONV = next(case for case in CASES if case.name == "conv_bn_resnet")


def _rows(operator, count=19):
    made = torch.Generator().manual_seed(0)
    size = (count, operator.shape[1])
    return torch.randn(size, generator=made, dtype=operator.dtype)


@pytest.mark.parametrize("mode", ["batch", "eval"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_together_as_alone(case, mode):
    model, data, loss = case.make()
    operator = Hessian(model, data, loss=loss, norm_mode=mode)
    rows = _rows(operator)
    assert operator.at_once == 16
    found = operator.matvecs(rows)
    assert operator.passes == len(rows)
    wanted = torch.stack([operator.matvec(row) for row in rows])
    scale = float(wanted.abs().max())
    assert_close(found, wanted, rtol=0, atol=1e-10 * scale)


def test_several_batches():
    model, (x, y), loss = CONV.make()
    batches = [(x[:3], y[:3]), (x[3:], y[3:])]
    operator = Hessian(model, batches, loss=loss, norm_mode="eval")
    rows = _rows(operator, 16)
    wanted = torch.stack([operator.matvec(row) for row in rows])
    assert_close(operator.matvecs(rows), wanted, rtol=1e-9, atol=1e-12)


def test_what_torch_cannot_batch_goes_one_by_one():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, *grads):
            (x,) = ctx.saved_tensors
            return Square.apply(x) * 3 * grads[0]

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, *grads):
            (x,) = ctx.saved_tensors
            assert not torch._C._are_functorch_transforms_active()
            return 2 * x * float(grads[0].sum()) * grads[0] / float(grads[0].sum())

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2, dtype=torch.float64)

        def forward(self, x):
            return Cube.apply(self.layer(x))

    x = torch.randn(5, 3, dtype=torch.float64)
    given = {"loss": nn.MSELoss(), "norm_mode": "eval"}
    operator = Hessian(Model(), (x, x[:, :2]), **given)
    rows = _rows(operator, 16)
    wanted = torch.stack([operator.matvec(row) for row in rows])
    assert_close(operator.matvecs(rows), wanted, rtol=1e-9, atol=1e-12)


def test_large_graphs_cut_ones_and_other_operators_go_one_by_one(monkeypatch):
    model, data, loss = CONV.make()
    given = {"loss": loss, "norm_mode": "batch"}
    assert Hessian(model, data, **given, micro_batch=3).at_once == 1
    assert GaussNewton(model, data, **given).at_once == 1
    assert MatrixOperator(torch.eye(3)).matvecs(torch.zeros(0, 3)).shape == (0, 3)
    monkeypatch.setattr(loss_hessian, "_SMALL_GRAPH", 1)
    assert Hessian(model, data, **given).at_once == 1


def test_traces_are_the_same_either_way(monkeypatch):
    model, data, loss = CONV.make()
    given = {"loss": loss, "norm_mode": "batch", "max_matvecs": 60}
    together = trace(model, data, **given)
    monkeypatch.setattr(loss_hessian, "_SMALL_GRAPH", 1)
    alone = trace(model, data, **given)
    assert together.trace == pytest.approx(alone.trace, rel=1e-9)
    assert together.cost.passes == alone.cost.passes
