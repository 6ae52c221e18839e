"""Products of several vectors at once are those of each alone."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.cases import CASES
from theodolite.core import MeasurementError, Status
from theodolite.instruments import (
    GaussNewton,
    Hessian,
    MatrixOperator,
    spectral_density,
    trace,
)
from theodolite.instruments.differentiate import derivatives
from theodolite.instruments.differentiate.derivatives import all_close
from theodolite.instruments.operators import loss_hessian
from theodolite.instruments.solvers import quadrature

CONV = next(case for case in CASES if case.name == "conv_bn_resnet")


def _rows(operator, count=19):
    made = torch.Generator().manual_seed(0)
    size = (count, operator.shape[1])
    return torch.randn(size, generator=made, dtype=operator.torch_dtype)


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


@pytest.mark.parametrize("count", [7, 8])
def test_eight_are_enough_to_go_at_once(count, monkeypatch):
    model, data, loss = CONV.make()
    operator, seen = Hessian(model, data, loss=loss, norm_mode="batch"), []
    monkeypatch.setattr(
        loss_hessian.Curve, "products", lambda _, rows: seen.append(len(rows)) or rows
    )
    operator.matvecs(_rows(operator, count))
    assert seen == ([8] if count == 8 else [])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_that_cancel_do_not_hinder_going_at_once(dtype, monkeypatch):
    # A bias in front of a batch norm changes nothing: its parts are all rounding.
    torch.manual_seed(0)
    blocks = [
        nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh()) for _ in range(4)
    ]
    model = nn.Sequential(*blocks, nn.Linear(8, 3)).to(dtype)
    batch = torch.randn(16, 8, dtype=dtype), torch.arange(16) % 3
    operator = Hessian(model, batch, loss=nn.CrossEntropyLoss(), norm_mode="batch")
    rows = _rows(operator, 16)
    wanted = torch.stack([operator.matvec(row) for row in rows])
    operator.matvecs(rows)  # compares some with single ones
    monkeypatch.setattr(
        derivatives, "pull_back", lambda *_: pytest.fail("a product went alone")
    )
    atol = 1e4 * torch.finfo(dtype).eps * float(wanted.abs().max())
    assert_close(operator.matvecs(rows), wanted, rtol=0, atol=atol)


def test_parts_are_judged_by_their_own_size_but_for_rounding_of_the_largest():
    large, small = torch.ones(3, dtype=torch.float64), torch.full((2,), 1e-15).double()
    assert all_close([large, small], [large, -small])
    assert not all_close([small, small], [small, -small])
    assert not all_close([large, small * 100], [large, -small * 100])
    assert not all_close([large, small * torch.nan], [large, small])


@pytest.mark.parametrize("count", [0, 7, 8])
@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_rows_that_do_not_fit_are_one_sentence(kind, count):
    model, data, loss = CONV.make()
    operator = kind(model, data, loss=loss, norm_mode="batch")
    rows = _rows(operator, count)
    wrong = [rows[:, 1:], rows.T, rows.reshape(-1), rows[None], rows.numpy(), [rows]]
    for given in wrong:
        with pytest.raises(MeasurementError, match=r"wanted are vectors as") as said:
            operator.matvecs(given)
        assert "\n" not in str(said.value)
    assert_close(operator.matvecs(rows.float()), operator.matvecs(rows), rtol=1e-4,
                 atol=1e-4)  # fmt: skip


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


@pytest.mark.parametrize("n_probes", [3, 20])
def test_densities_are_the_same_either_way(n_probes, monkeypatch):
    model, data, loss = CONV.make()
    given = {"loss": loss, "norm_mode": "batch", "method": "products"}
    given |= {"n_probes": n_probes, "steps": 20}
    together = spectral_density(model, data, **given)
    monkeypatch.setattr(loss_hessian, "_SMALL_GRAPH", 1)
    alone = spectral_density(model, data, **given)
    scale = float(abs(alone.nodes).max())
    assert together.nodes == pytest.approx(alone.nodes, abs=1e-9 * scale)
    assert together.cdf_high == pytest.approx(alone.cdf_high, abs=1e-6)
    assert together.cost.passes == alone.cost.passes


class _Several(MatrixOperator):
    """Multiplies up to four vectors at once, and notes how many."""

    at_once = 4

    def __init__(self, matrix):
        super().__init__(matrix, symmetric=True)
        self.taken, self.lost = [], None

    def matvecs(self, vectors):
        self.taken.append(len(vectors))
        found = super().matvecs(vectors)
        if self.lost is not None and len(self.taken) == 3:
            found[self.lost] = torch.nan
        return found


def test_bases_side_by_side_keep_to_the_memory_allowed():
    matrix = torch.diag(torch.arange(30, dtype=torch.float64))
    row, steps = 30 * 8, 5
    for bases, widest in ((1, 1), (3, 3), (8, 4)):
        operator = _Several(matrix)
        quadrature.quadrature_of(
            operator, n_probes=6, steps=steps, seed=0, basis_bytes=bases * 6 * row
        )
        assert max(operator.taken, default=1) == widest
        assert operator.passes == 6 * steps


def test_vectors_that_end_early_leave_the_others_their_steps():
    operator = _Several(torch.diag(torch.tensor([1.0, 1.0, 2.0, 2.0, 3.0]).double()))
    found = quadrature.quadrature_of(operator, n_probes=4, steps=5, seed=0)
    # Three distinct eigenvalues are all that any vector sees.
    assert operator.passes == 12
    assert found.nodes[:, 2] == pytest.approx(3.0)


@pytest.mark.parametrize("lost", [0, 2])
def test_vectors_before_one_that_fails_are_kept(lost):
    operator = _Several(torch.diag(torch.arange(1, 31, dtype=torch.float64)))
    operator.lost = lost
    found = spectral_density(operator, n_probes=8, steps=6, method="products")
    assert found.status is Status.NONFINITE
    assert len(found.nodes) == lost
