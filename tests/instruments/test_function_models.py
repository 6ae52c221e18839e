"""Functions of a dict of tensors as models, against dense oracles."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.instruments.agreement import cut, multiplies_as, near
from theodolite.core import MeasurementError
from theodolite.instruments import (
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    HalfSquareLoss,
    Hessian,
    Jacobian,
    Problem,
    TangentKernel,
    by_block,
    extreme_eigenvalues,
    hessian,
    spectrum,
    tangent_kernel,
    trace,
)

X = torch.linspace(-3, 3, 21, dtype=torch.float64).sin().reshape(7, 3)
Y = X[:, :2].cos()


def tensors(dtype=torch.float64):
    made = torch.Generator().manual_seed(0)
    shapes = {"w": (4, 3), "layer.bias": (4,), "scale": (), "v": (2, 4)}
    return {
        name: torch.randn(shape, generator=made, dtype=torch.float64).to(dtype)
        for name, shape in shapes.items()
    }


def network(params, x):
    hidden = torch.tanh(x @ params["w"].T + params["layer.bias"])
    return params["scale"] * hidden @ params["v"].T


def unflattened(params, flat):
    parts = flat.split([tensor.numel() for tensor in params.values()])
    pairs = zip(params.items(), parts, strict=True)
    return {name: part.view_as(tensor) for (name, tensor), part in pairs}


def dense(scalar, params):
    """Return the Hessian of a scalar function of a dict."""
    flat = torch.cat([tensor.reshape(-1) for tensor in params.values()])
    return torch.autograd.functional.hessian(
        lambda v: scalar(unflattened(params, v)), flat
    )


def jacobian(params, x):
    flat = torch.cat([tensor.reshape(-1) for tensor in params.values()])
    outputs = torch.autograd.functional.jacobian(
        lambda v: network(unflattened(params, v), x), flat
    )
    return outputs.reshape(-1, len(flat))


@pytest.mark.parametrize("batches", [(X, Y), cut((X, Y), 3)], ids=["whole", "cut"])
@pytest.mark.parametrize("micro_batch", [None, 2])
def test_operators_of_a_function(batches, micro_batch):
    params = tensors()
    given = {"loss": nn.MSELoss(), "micro_batch": micro_batch}
    exact = dense(lambda p: functional.mse_loss(network(p, X), Y), params)
    operator = Hessian((network, params), batches, **given)
    multiplies_as(operator, exact)
    assert operator.names == list(params)
    rows = jacobian(params, X)
    near(Jacobian((network, params), X).dense(), rows)
    near(TangentKernel((network, params), X).dense(), rows @ rows.T)
    for kind in (GaussNewton, Fisher):
        multiplies_as(kind((network, params), batches, **given), rows.T @ rows / 7)
    slopes = (network(params, X) - Y).reshape(7, 2, 1)
    singles = (rows.reshape(7, 2, -1) * slopes).sum(1)
    found = EmpiricalFisher((network, params), batches, **given)
    multiplies_as(found, singles.T @ singles / 7)


def test_instruments_take_a_function():
    params = tensors()
    exact = dense(lambda p: functional.mse_loss(network(p, X), Y), params)
    problem = Problem((network, params), (X, Y), loss=nn.MSELoss())
    values = np.linalg.eigvalsh(exact)
    for given, data in ((problem, ()), ((network, params), ((X, Y),))):
        more = {"loss": nn.MSELoss()} if data else {}
        near(hessian(given, *data, **more).matrix, exact)
        near(spectrum(given, *data, **more).eigenvalues, values[::-1])
        near(trace(given, *data, **more).trace, np.trace(exact))
        found = extreme_eigenvalues(given, *data, method="products", **more)
        near(found.eigenvalues, values[-1:], rtol=1e-6)
        blocks = by_block(trace, given, *data, per="parameter", **more)
        assert blocks.blocks == tuple(params)
    rows = jacobian(params, X)
    near(tangent_kernel((network, params), X).matrix, rows @ rows.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_hessian_of_any_scalar_function(dtype):
    def energy(params):
        return (params["a"] ** 2).sum() * params["b"].exp() + params["a"].prod()

    params = {"a": torch.tensor([1.0, -2.0, 0.5]), "b": torch.tensor(0.3)}
    params = {name: tensor.to(dtype) for name, tensor in params.items()}
    operator = Hessian((energy, params))
    wide = {name: tensor.double() for name, tensor in params.items()}
    exact = dense(energy, wide)
    near(operator.dense(), exact, rtol=1e-10 if dtype is torch.float64 else 1e-6)
    reading = spectrum((energy, params))
    values = np.linalg.eigvalsh(exact)[::-1]
    assert np.all(np.abs(reading.eigenvalues - values) <= reading.eigenvalue_error)
    product = operator @ params
    assert list(product) == ["a", "b"]
    # It follows the tensors that were given, and leaves them as they were.
    params["b"].mul_(2)
    near(operator.dense(), dense(energy, {n: t.double() for n, t in params.items()}),
         rtol=1e-10 if dtype is torch.float64 else 1e-6)  # fmt: skip
    assert all(not t.requires_grad and t.grad is None for t in params.values())


def test_a_module_called_with_other_tensors():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    model.train()
    params = {name: 2 * p.detach() for name, p in model.named_parameters()}
    pair = (lambda p, x: torch.func.functional_call(model, p, (x,)), params)
    found = Hessian(pair, (X, Y), loss=nn.MSELoss(), norm_mode="batch").dense()
    assert model[1].num_batches_tracked == 0
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    near(found, Hessian(model, (X, Y), loss=nn.MSELoss(), norm_mode="batch").dense())


class Pseudo(nn.Module):
    """A convex loss that torch does not have."""

    def forward(self, outputs, targets):
        return ((outputs - targets).square() + 1).sqrt().sum(1).mean()


LOSSES = {
    "huber": nn.HuberLoss(delta=0.3),
    "smooth": nn.SmoothL1Loss(beta=0.5),
    "margin": nn.SoftMarginLoss(),
    "pseudo": Pseudo(),
    "divergence": nn.KLDivLoss(reduction="batchmean"),
    "poisson": nn.PoissonNLLLoss(),
    "half": HalfSquareLoss(),
    "function": lambda outputs, targets: torch.cosh(outputs - targets).mean(),
    "quartic": lambda outputs, targets: (outputs - targets).pow(4).mean(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gauss_newton_of_any_convex_loss(name):
    loss, params = LOSSES[name], tensors()
    targets = Y.exp() if name in ("divergence", "poisson") else Y
    rows, outputs = jacobian(params, X), network(params, X)
    inner = torch.autograd.functional.hessian(
        lambda z: loss(z.reshape(7, 2), targets), outputs.reshape(-1)
    )
    wanted = rows.T @ inner @ rows
    found = GaussNewton((network, params), (X, targets), loss=loss)
    scale = max(1.0, float(wanted.abs().max()))
    np.testing.assert_allclose(found.dense(), wanted, rtol=0, atol=1e-10 * scale)
    assert np.linalg.eigvalsh(found.dense()).min() > -1e-10


def test_outputs_come_before_a_loss_for_the_hessian_too():
    layer = nn.Linear(3, 2).double()
    picked = {"outputs": lambda model, batch: {"out": model(batch[0])}["out"] * 2}
    for kind in (Hessian, GaussNewton):
        found = kind(layer, (X, Y), loss=nn.MSELoss(), **picked).dense()
        near(found, 4 * kind(layer, (X, Y), loss=nn.MSELoss()).dense())


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ((network, {}), "0 real tensors of 0 entries"),
        ((network, [X]), "are a list"),
        ((network, {"w": X, "n": torch.tensor(3)}), "1 real tensors of 2 entries"),
        ((nn.Linear(3, 2), {"w": X}), "pass the module itself"),
        (network, "is a function: pass a torch module, a pair"),
    ],
)
def test_pairs_that_are_no_model_get_one_sentence(model, words):
    with pytest.raises(MeasurementError, match=words) as said:
        Problem(model, (X, Y), loss=nn.MSELoss())
    assert "\n" not in str(said.value)
