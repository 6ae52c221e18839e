"""Norm mode ``as_is``: one norm in train mode, one frozen, both as they are."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.autograd.functional import hessian as dense_hessian
from torch.autograd.functional import jacobian as dense_jacobian

from tests.instruments.test_preservation import portrait
from theodolite.certificates import certificate
from theodolite.core import MeasurementError, NormMode, Reading
from theodolite.instruments import (
    BlockJacobian,
    GaussNewton,
    Hessian,
    Jacobian,
    TangentKernel,
    by_block,
    classifier_norms,
    collapse,
    extreme_eigenvalues,
    hessian,
    sharpness_along,
    singular_values,
    spectrum,
    tangent_kernel,
    trace,
)
from theodolite.paths import lesion, path_ensemble, unravel

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(9, 3, generator=GENERATOR, dtype=torch.float64)
Y = torch.arange(9) % 3
LOSS = nn.CrossEntropyLoss()
GIVEN = {"loss": LOSS, "norm_mode": "as_is"}
RECORD = {"train": ("1",), "eval": ("4",)}


def drawn(*layers):
    """Return a network with statistics that are not those of any batch."""
    torch.manual_seed(1)
    model = nn.Sequential(*layers).double()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + 0.2)
                tensor.view(-1)[::2].mul_(1 if tensor.ndim < 2 else -1)
    return model


def mixed():
    model = drawn(
        nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(),
        nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3),
    )  # fmt: skip
    model[4].eval()
    return model


def by_hand(model, x, values, moments=None):
    """Run the network by its definition, from parameters in a flat vector."""
    sizes = [p.numel() for p in model.parameters()]
    w1, b1, g1, c1, w2, b2, g2, c2, w3, b3 = [
        part.reshape(p.shape)
        for part, p in zip(values.split(sizes), model.parameters(), strict=True)
    ]
    z = x @ w1.T + b1
    mean, variance = moments or (z.mean(0), z.var(0, correction=0))
    z = torch.tanh(g1 * (z - mean) / (variance + model[1].eps).sqrt() + c1)
    z, held = z @ w2.T + b2, model[4]
    z = g2 * (z - held.running_mean) / (held.running_var + held.eps).sqrt() + c2
    return torch.tanh(z) @ w3.T + b3


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def truth(model, x, y):
    """Return the Hessian of the loss, and the Jacobian of outputs by parameters."""
    start = flat(model)
    curved = dense_hessian(lambda v: LOSS(by_hand(model, x, v), y), start)
    sloped = dense_jacobian(lambda v: by_hand(model, x, v).reshape(-1), start)
    return curved.numpy(), sloped.numpy()


@pytest.mark.parametrize("micro_batch", [None, 2])
def test_products_are_those_of_the_mixed_network(micro_batch):
    model = mixed()
    before, cut = portrait(model), {"micro_batch": micro_batch}
    curved, sloped = truth(model, X, Y)
    mean = {"loss": nn.MSELoss(), "norm_mode": "as_is"}
    for operator, wanted in (
        (Hessian(model, (X, Y), **GIVEN, **cut), curved),
        (Jacobian(model, X, norm_mode="as_is", **cut), sloped),
        (GaussNewton(model, (X, X), **mean, **cut), 2 / X.numel() * sloped.T @ sloped),
        (TangentKernel(model, X, norm_mode="as_is", **cut), sloped @ sloped.T),
    ):
        vector = np.linspace(-1, 1, wanted.shape[1])
        assert_allclose(operator @ vector, wanted @ vector, atol=1e-12)
        assert operator.norm_layers == RECORD
    assert portrait(model) == before
    rival = Hessian(model, (X, Y), loss=LOSS, norm_mode="batch").dense()
    assert np.abs(rival - curved).max() > 1e-3


def test_several_batches_have_their_own_statistics():
    model, parts = mixed(), [(X[:4], Y[:4]), (X[4:], Y[4:])]
    wanted = sum(len(x) / len(X) * truth(model, x, y)[0] for x, y in parts)
    assert_allclose(Hessian(model, parts, **GIVEN).dense(), wanted, atol=1e-12)


def test_readings_say_which_norms_were_in_train_and_which_in_eval(tmp_path):
    model = mixed()
    curved, sloped = truth(model, X, Y)
    top = np.linalg.eigvalsh(curved)
    along = sharpness_along(model, (X, Y), **GIVEN, tol=1e-8)
    along(0)
    found = {
        "hessian": (hessian(model, (X, Y), **GIVEN), "matrix", curved),
        "spectrum": (spectrum(model, (X, Y), **GIVEN), "eigenvalues", top[::-1]),
        "trace": (trace(model, (X, Y), **GIVEN), "", None),
        "blocks": (by_block(trace, model, (X, Y), **GIVEN), "", None),
        "extremes": (
            extreme_eigenvalues(model, (X, Y), **GIVEN, ends="largest", tol=1e-10),
            "eigenvalues", top[-1:],
        ),
        "along": (along.reading(), "eigenvalues", top[None, -1:]),
        "kernel": (
            tangent_kernel(model, X, norm_mode="as_is"), "matrix", sloped @ sloped.T
        ),
    }  # fmt: skip
    for name, (reading, quantity, wanted) in found.items():
        assert reading.norm_mode is NormMode.AS_IS, name
        assert reading.norm_layers == RECORD, name
        if wanted is not None:
            assert_allclose(getattr(reading, quantity), wanted, atol=1e-6)
    reading = found["trace"][0]
    assert "norm mode as_is (1 in train, 1 in eval)" in str(reading)
    assert set(reading.rows().column("norm_layers")) == {"1 in train, 1 in eval"}
    assert reading.to_dict()["norm_layers"] == {"train": ["1"], "eval": ["4"]}
    reading.save(tmp_path / "trace")
    assert Reading.load(tmp_path / "trace").norm_layers == RECORD
    alike = trace(model, (X, Y), loss=LOSS, norm_mode="batch")
    assert alike.norm_layers == {}
    assert "norm_layers" not in alike.rows()[0]


def test_jacobians_of_blocks_couple_samples_by_norms_in_train_mode_alone():
    model, values = mixed(), flat(mixed())
    given = {"block": "", "norm_mode": "as_is"}
    coupled = BlockJacobian(model, X, **given)
    wanted = dense_jacobian(lambda x: by_hand(model, x, values), X)
    assert_allclose(coupled.dense(), wanted.reshape(27, 27), atol=1e-12)
    assert coupled.coupling_rank == 2 * 4
    z = model[0](X).detach()
    held = z.mean(0), z.var(0, correction=0)
    wanted = dense_jacobian(lambda x: by_hand(model, x, values, held), X)
    single = BlockJacobian(model, X, **given, coupled=False)
    assert_allclose(single.dense(), wanted.reshape(27, 27), atol=1e-12)
    frozen = BlockJacobian(model, X, block=("3", "6"), norm_mode="as_is")
    assert frozen.coupling_rank == 0
    assert singular_values(model, X, **given).norm_layers == RECORD


def test_classifiers_and_paths_hold_the_statistics_of_each_norm():
    model = mixed()
    still = copy.deepcopy(model).eval()
    z = model[0](X).detach()
    still[1].running_mean.copy_(z.mean(0))
    still[1].running_var.copy_(z.var(0, correction=0))
    quantities = {
        classifier_norms: ((X, Y), "layer_norms"),
        collapse: ((X, Y), "nc1_variability"),
        path_ensemble: (X, "energy"),
        unravel: (X, "energy"),
    }
    residual = _Residual(model), _Residual(still)
    for instrument, (data, quantity) in quantities.items():
        pair = residual if instrument in (path_ensemble, unravel) else (model, still)
        settings = {"linearise": True} if pair is residual else {}
        before = portrait(pair[0])
        found = instrument(pair[0], data, norm_mode="as_is", **settings)
        wanted = instrument(pair[1], data, norm_mode="eval", **settings)
        same = getattr(found, quantity), getattr(wanted, quantity)
        assert_allclose(*same, rtol=1e-10, err_msg=quantity)
        assert [len(names) for names in found.norm_layers.values()] == [1, 1]
        assert portrait(pair[0]) == before
    cut = [
        lesion(one, X, norm_mode=mode, linearise=True)
        for one, mode in zip(residual, ("as_is", "eval"), strict=True)
    ]
    assert_allclose(cut[0].frozen_change, cut[1].frozen_change, rtol=1e-10)
    assert cut[0].norm_layers["eval"] == ("branch.4",)
    bounds = certificate(model, (X, Y), "cross_entropy", norm_mode="as_is")
    assert bounds.norm_layers == RECORD
    assert bounds.loss == pytest.approx(float(LOSS(by_hand(model, X, flat(model)), Y)))


class _Residual(nn.Module):
    def __init__(self, branch):
        super().__init__()
        self.branch = branch

    def forward(self, x):
        return x + self.branch(x)


def test_modes_that_change_are_followed_or_refused():
    model = mixed()
    operator = Hessian(model, (X, Y), **GIVEN)
    first = operator.dense()
    model[1].eval(), model[4].train()
    other = Hessian(model, (X, Y), **GIVEN).dense()
    assert_allclose(operator.dense(), other, atol=1e-12)
    assert np.abs(other - first).max() > 1e-3
    with torch.no_grad():
        model[1].running_mean.add_(1.0)  # which counts now
    assert_allclose(operator.dense(), Hessian(model, (X, Y), **GIVEN).dense())
    model.eval()
    with pytest.raises(MeasurementError, match="train or eval mode since"):
        operator.dense()


def test_a_norm_without_running_statistics_takes_those_of_the_batch_in_eval_mode():
    model = drawn(
        nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 2)
    ).eval()
    wanted = Hessian(model, (X, Y % 2), loss=LOSS, norm_mode="batch").dense()
    assert_allclose(Hessian(model, (X, Y % 2), **GIVEN).dense(), wanted, atol=1e-12)
    found = BlockJacobian(model, X, block="", norm_mode="as_is", coupled=False)
    frozen = BlockJacobian(model, X, block="", norm_mode="frozen")
    assert_allclose(found.dense(), frozen.dense(), atol=1e-12)


def test_dropout_in_train_mode_is_refused_or_fixed():
    model = mixed()
    model.append(nn.Dropout(0.5))
    with pytest.raises(MeasurementError, match="dropout '7' is active"):
        Hessian(model, (X, Y), **GIVEN)
    fixed = Hessian(model, (X, Y), **GIVEN, randomness="fixed")
    assert_allclose(fixed.dense(), fixed.dense())
    assert model[7].training
