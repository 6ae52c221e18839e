"""Norms with a bias and no weight, and with what else may be missing."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.instruments.agreement import near
from tests.instruments.orders import as_instruments_do
from theodolite.instruments import hessian

MEAN, SPREAD = torch.linspace(-1, 1, 4).double(), torch.linspace(0.5, 2, 4).double()


def by_group(x):
    centred = x.reshape(len(x), 2, -1)
    return by_axes(centred, [-1]).reshape(x.shape)


def by_axes(x, axes):
    centred = x - x.mean(axes, keepdim=True)
    return centred / (centred.square().mean(axes, keepdim=True) + 1e-5).sqrt()


def by_running(x):
    return (x - MEAN[:, None]) / (SPREAD[:, None] + 1e-5).sqrt()


# For each norm: by torch, by hand without weight and bias, and the mode that it wants.
NORMS = {
    "batch": (
        lambda x, w, b: functional.batch_norm(x, MEAN, SPREAD, w, b),
        by_running,
        "eval",
    ),
    "batch, short": (
        lambda x, w, b: torch.batch_norm(
            x, w, b, MEAN, SPREAD, False, 0.1, 1e-5, False
        ),
        by_running,
        "eval",
    ),
    "batch in training": (
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        lambda x: by_axes(x, [0, -1]),
        "batch",
    ),
    "instance": (
        lambda x, w, b: functional.instance_norm(x, weight=w, bias=b),
        lambda x: by_axes(x, [-1]),
        "eval",
    ),
    "instance on given": (
        lambda x, w, b: functional.instance_norm(x, MEAN, SPREAD, w, b, False),
        by_running,
        "eval",
    ),
    "group": (lambda x, w, b: functional.group_norm(x, 2, w, b), by_group, "eval"),
    "group, short": (lambda x, w, b: torch.group_norm(x, 2, w, b), by_group, "eval"),
}


class Normed(nn.Module):
    def __init__(self, norm, *, inner, weight, bias):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(3, 3) if inner else None
        self.weight = nn.Parameter(torch.rand(4) + 0.5) if weight else None
        self.bias = nn.Parameter(torch.randn(4)) if bias else None
        self.norm = norm

    def forward(self, x):
        x = x if self.inner is None else self.inner(x).sin()
        return self.norm(x, self.weight, self.bias)


def by_hand(plain):
    def norm(x, w, b):
        out = plain(x) if w is None else plain(x) * w[:, None]
        return out if b is None else out + b[:, None]

    return norm


def loss(model, x):
    return model(x).tanh().square().sum()


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize(("weight", "bias"), [(False, True), (True, False), (1, 1)])
@pytest.mark.parametrize("name", NORMS)
def test_hessians_are_those_of_a_norm_by_hand(name, weight, bias, inner):
    work, plain, mode = NORMS[name]
    how = {"inner": inner, "weight": weight, "bias": bias}
    x = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(1)).double()
    found, wanted = (
        hessian(Normed(norm, **how).double(), x, loss=loss, norm_mode=mode).matrix
        for norm in (work, by_hand(plain))
    )
    near(found, wanted)
    assert abs(wanted).max() > 0.1


def test_large_batch_norms_too():
    x = torch.randn(4000, 4, 3, generator=torch.Generator().manual_seed(1)).double()
    work, plain, _ = NORMS["batch"]
    how = {"inner": False, "weight": False, "bias": True}
    found, wanted = (
        hessian(Normed(norm, **how).double(), x, loss=loss, norm_mode="eval").matrix
        for norm in (work, by_hand(plain))
    )
    near(found, wanted)


def test_layer_norms_of_half_precision_too():
    x = torch.randn(2, 3, dtype=torch.bfloat16)
    bias = torch.zeros(3, dtype=torch.bfloat16, requires_grad=True)
    with as_instruments_do():
        out = functional.layer_norm(x, (3,), bias=bias).square().sum()
        (first,) = torch.autograd.grad(out, bias, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), bias)
    assert second.tolist() == [4.0] * 3  # two samples, twice each


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(
    "norm",
    [
        lambda x, bias: functional.layer_norm(x, (4,), bias=bias),
        lambda x, bias: functional.group_norm(x, 2, bias=bias),
    ],
)
def test_a_bias_that_does_not_fit_is_torchs_to_complain_about(norm, size):
    x, bias = torch.randn(3, 4), torch.zeros(size)
    with pytest.raises(RuntimeError) as wanted:
        norm(x, bias)
    with as_instruments_do(), pytest.raises(RuntimeError) as found:
        norm(x, bias)
    assert str(found.value) == str(wanted.value)
