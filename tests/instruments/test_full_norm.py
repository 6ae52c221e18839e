"""Statistics over all the data, in the memory of one chunk."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES
from tests.instruments.agreement import cut, multiplies_as, near
from tests.oracles import looped_gauss_newton, looped_hessian, looped_jacobian
from theodolite.core import MeasurementError
from theodolite.instruments import GaussNewton, HalfSquareLoss, Hessian, Jacobian

BN_CASES = [c for c in CASES if c.norm == "batch"]


@pytest.mark.parametrize("case", BN_CASES, ids=lambda c: c.name)
def test_independent_of_the_split(case):
    model, batch, loss = case.make()
    model.train()
    exact = looped_hessian(model, batch, loss).detach()
    vector = torch.randn(len(exact), dtype=torch.float64)
    for batches, size in [
        (batch, None),
        (cut(batch, 1), None),
        (cut(batch, 1, 4), 2),
        (batch, 4),
    ]:
        operator = Hessian(
            model, batches, loss=loss, norm_mode="full", micro_batch=size
        )
        assert operator.coupled is (size is not None)
        near(operator @ vector, exact @ vector)
        value, gradient = operator.loss_and_gradient()
        near(gradient, _gradient(model, batch, loss))
        assert float(value) == pytest.approx(
            loss(model(batch[0]), batch[1]).item(), rel=1e-12
        )


def _gradient(model, batch, loss):
    value = loss(model(batch[0]), batch[1])
    parts = torch.autograd.grad(value, list(model.parameters()))
    return torch.cat([part.reshape(-1) for part in parts])


def test_symmetry_and_finite_differences():
    model, batch, loss = next(c for c in BN_CASES if c.name == "in_place_relu").make()
    operator = Hessian(model, batch, loss=loss, norm_mode="full", micro_batch=2)
    matrix = operator.dense()
    near(matrix, matrix.T)
    direction = torch.randn(len(matrix), dtype=torch.float64)
    ends = []
    for step in (1e-5, -1e-5):
        with torch.no_grad():
            for p, d in zip(
                model.parameters(), operator.split(direction).values(), strict=True
            ):
                p.add_(step * d)
        ends.append(operator.loss_and_gradient()[1])
        with torch.no_grad():
            for p, d in zip(
                model.parameters(), operator.split(direction).values(), strict=True
            ):
                p.sub_(step * d)
    slope = (ends[0] - ends[1]) / 2e-5
    near(matrix @ direction.numpy(), slope, rtol=1e-7)


def test_gauss_newton_and_jacobian():
    model, batch, loss = next(c for c in BN_CASES if c.name == "in_place_relu").make()
    settings = {"norm_mode": "full", "micro_batch": 2}
    curvature = GaussNewton(model, batch, loss=loss, **settings)
    jacobian = Jacobian(model, batch, **settings)
    model.train()
    multiplies_as(curvature, looped_gauss_newton(model, batch, loss))
    exact = looped_jacobian(model, batch[0])
    multiplies_as(jacobian, exact)
    multiplies_as(jacobian.T, exact.T)
    near(jacobian.outputs(), model(batch[0]).reshape(-1))


class Sequence(nn.Module):
    """A norm over samples and steps, of any number of steps."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3)
        self.last = nn.Linear(3, 2)

    def forward(self, x):
        return self.last(torch.tanh(self.norm(self.first(x))).mean(2))


def test_batches_that_cannot_be_joined():
    model, loss = Sequence().double(), HalfSquareLoss()
    parts = [
        (
            torch.randn(n, 2, steps, dtype=torch.float64),
            torch.randn(n, 2, dtype=torch.float64),
        )
        for n, steps in ((3, 4), (2, 7))
    ]
    operator = Hessian(model, parts, loss=loss, norm_mode="full")
    assert operator.coupled

    def by_hand(network, given):
        """The same with the moments of all values, taken directly."""
        z = [network.first(x) for x, _ in given]
        every = torch.cat([part.transpose(0, 1).reshape(3, -1) for part in z], dim=1)
        mean, variance = every.mean(1), every.var(1, correction=0)
        total = 0.0
        for part, (_, y) in zip(z, given, strict=True):
            normed = (part - mean[:, None]) / (variance[:, None] + 1e-5).sqrt()
            normed = normed * network.norm.weight[:, None] + network.norm.bias[:, None]
            outputs = network.last(torch.tanh(normed).mean(2))
            total = total + (outputs - y).square().sum()
        return total / (2 * 5)

    multiplies_as(operator, looped_hessian(model, parts, by_hand))


def test_little_memory_turns_to_chunks_with_the_same_result():
    model, batch, loss = next(c for c in BN_CASES if c.name == "in_place_relu").make(
        samples=24
    )
    parts = cut(batch, 8, 16)
    roomy = Hessian(model, parts, loss=loss, norm_mode="full")
    tight = Hessian(model, parts, loss=loss, norm_mode="full", graph_bytes=14_000)
    assert not roomy.coupled
    assert tight.coupled
    vector = torch.randn(roomy.shape[0], dtype=torch.float64)
    near(tight @ vector, roomy @ vector)
    with pytest.raises(MeasurementError, match=r"GiB.*micro_batch"):
        Hessian(model, parts, loss=loss, norm_mode="full", graph_bytes=5_000)


def test_paths_that_depend_on_the_data_are_refused():
    class Fickle(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(x) if len(x) > 2 else x * self.norm.weight

    model = Fickle().double()
    x = torch.randn(5, 3, dtype=torch.float64)
    operator = Hessian(
        model, (x, x + 1), loss=HalfSquareLoss(), norm_mode="full", graph_bytes=10**9
    )
    assert np.isfinite(operator.dense()).all()
    with pytest.raises(MeasurementError):
        Hessian(
            model, (x, x + 1), loss=HalfSquareLoss(), norm_mode="full", micro_batch=3
        ) @ torch.ones(6)
