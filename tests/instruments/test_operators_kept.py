"""What operators keep from product to product, and when they look again."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES, shortcut_case
from tests.instruments.agreement import near
from tests.oracles import looped_hessian
from theodolite.core import MeasurementError
from theodolite.instruments import GaussNewton, Hessian, Jacobian, TangentKernel
from theodolite.instruments.passes import prepared_model
from theodolite.instruments.solvers.eigenpairs import Search, searched


@pytest.fixture
def openings(monkeypatch):
    """Count how often models are opened for passes."""
    seen, opened = [], prepared_model.opened

    def counted(model, **how):
        seen.append(model)
        return opened(model, **how)

    monkeypatch.setattr(prepared_model, "opened", counted)
    return seen


KINDS = {
    "hessian": lambda model, batch, **how: Hessian(model, batch, **how),
    "block": lambda model, batch, **how: next(
        iter(Hessian(model, batch, **how).blocks.values())
    ),
    "gauss_newton": lambda model, batch, **how: GaussNewton(model, batch, **how),
    "jacobian": lambda model, batch, loss, **how: Jacobian(model, batch, **how),
    "transposed": lambda model, batch, loss, **how: Jacobian(model, batch, **how).T,
    "tangents": lambda model, batch, loss, **how: TangentKernel(model, batch, **how),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_is_its_products_bit_for_bit_and_opens_the_model_once(kind, openings):
    model, batch, loss = shortcut_case()
    operator = KINDS[kind](model, batch, loss=loss, norm_mode="batch")
    units = torch.eye(operator.shape[1], dtype=torch.float64)
    one_by_one = torch.stack([operator @ unit for unit in units], dim=1)
    assert len(openings) > len(units)
    openings.clear()
    np.testing.assert_array_equal(operator.dense(), one_by_one)
    assert len(openings) == 1
    near(
        operator @ units, one_by_one, rtol=1e-13
    )  # several at once, where it is quicker
    assert len(openings) == 2


def test_a_sweep_of_lanczos_opens_the_model_once(openings):
    model, batch, loss = shortcut_case()
    operator = Hessian(model, batch, loss=loss, norm_mode="batch")
    search = Search(
        k=2,
        ends="largest",
        tol=1e-6,
        max_matvecs=100,
        basis_bytes=2**20,
        repeated=False,
        stop="residual",
        seed=0,
    )
    openings.clear()
    pairs = searched(operator, search, start=None)
    assert operator.passes == pairs.spent > 3
    assert len(pairs.directions) == 1  # one a sweep
    assert len(openings) == 1


def test_what_is_run_for_every_product_starts_as_found_each_time(openings):
    """Where graphs are not kept, since statistics run over several passes."""
    _, batch, loss = shortcut_case()
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).double()
    how = {"loss": loss, "norm_mode": "batch"}
    operator = Hessian(model, batch, micro_batch=4, **how)
    vectors = torch.randn(operator.shape[1], 3, dtype=torch.float64)
    openings.clear()
    products = operator @ vectors
    assert len(openings) == 3
    near(products, Hessian(model, batch, **how) @ vectors)


@pytest.mark.parametrize("write", ["in place", "data", "new storage", "new parameter"])
def test_products_follow_the_parameters(write):
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    operator = Hessian(model, batch, loss=loss, norm_mode="batch")
    before = operator.dense()
    weight = model[0].weight
    with torch.no_grad():
        if write == "in place":
            weight.mul_(2)
        elif write == "data":
            weight.data.mul_(2)  # leaves the version as it was
        elif write == "new storage":
            weight.data = weight.data * 2
        else:
            model[0].weight = nn.Parameter(weight * 2)
    after = operator.dense()
    near(after, looped_hessian(model, batch, loss))
    assert np.abs(after - before).max() > 1e-3


def test_products_follow_data_and_buffers():
    model, batch, loss = next(c for c in CASES if c.name == "in_place_relu").make()
    operator = Hessian(model, batch, loss=loss, norm_mode="eval")
    vector = torch.ones(operator.shape[0], dtype=torch.float64)
    first = operator @ vector
    batch[0].mul_(2)
    second = operator @ vector
    model[1].running_var.mul_(3)
    third = operator @ vector
    model.eval()
    near(third, looped_hessian(model, batch, loss) @ vector)
    assert (first - second).abs().max() > 1e-3
    assert (second - third).abs().max() > 1e-3


@pytest.mark.parametrize("where", ["model", "loss"])
def test_products_follow_settings(where):
    model, batch, _ = next(c for c in CASES if c.name == "in_place_relu").make()
    targets = torch.arange(len(batch[0])) % 2
    loss = nn.CrossEntropyLoss()
    operator = Hessian(model, (batch[0], targets), loss=loss, norm_mode="batch")
    before = operator.dense()
    if where == "model":
        model[1].eps = 0.5
    else:
        loss.label_smoothing = 0.5
    after = operator.dense()
    near(after, looped_hessian(model, (batch[0], targets), loss))
    assert np.abs(after - before).max() > 1e-3


@pytest.mark.parametrize("mode", ["full", "frozen", "eval"])
@pytest.mark.parametrize("change", ["inputs", "targets", "class weights"])
def test_products_follow_data_that_was_joined_and_weighed(mode, change):
    model, batch, _ = next(c for c in CASES if c.name == "in_place_relu").make()
    x, targets = batch[0], torch.arange(len(batch[0])) % 2
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]).double())
    parts = [(x[:3].clone(), targets[:3].clone()), (x[3:].clone(), targets[3:].clone())]
    given = {"loss": loss, "norm_mode": mode}
    operator = Hessian(model, parts, **given)
    vectors = torch.randn(operator.shape[1], 3, dtype=torch.float64)
    before = operator @ vectors
    if change == "inputs":
        parts[0][0].mul_(3)
    elif change == "targets":
        parts[0][1][:2] = -100
    else:
        loss.weight[0] = 5.0
    after = operator @ vectors
    near(after, Hessian(model, parts, **given) @ vectors)
    assert (after - before).abs().max() > 1e-4


def test_graphs_are_kept_and_let_go():
    model, batch, loss = next(c for c in CASES if c.name == "in_place_relu").make()
    passes = []
    model.register_forward_hook(lambda *_: passes.append(1))
    with Hessian(model, batch, loss=loss, norm_mode="batch") as operator:
        vector = torch.ones(operator.shape[0], dtype=torch.float64)
        first = operator @ vector
        count = len(passes)
        # Running statistics play no part here, so a user's pass costs nothing.
        model.train()
        operator @ vector
        rebuilt = len(passes)
        model[1].running_mean.add_(1)
        operator @ vector
        assert len(passes) == rebuilt
        assert len(operator._prepared.graphs) == 1
    assert rebuilt <= count + 1
    assert len(operator._prepared.graphs) == 0
    torch.testing.assert_close(operator @ vector, first)


def test_a_model_that_was_converted_is_refused():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    operator = Hessian(model, batch, loss=loss, norm_mode="batch")
    model.float()
    with pytest.raises(MeasurementError, match="make a new one"):
        operator @ torch.ones(operator.shape[0])
