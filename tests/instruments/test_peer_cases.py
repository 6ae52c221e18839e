"""Kinds of models, losses and data that curvlinops tests, against dense oracles.

Each is written down from its description: layers, loss, reduction, shapes of batches.
"""

import re
from collections import UserDict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from tests.instruments.agreement import near
from theodolite.core import MeasurementError
from theodolite.instruments import (
    EmpiricalFisher,
    GaussNewton,
    Hessian,
    Identity,
    Jacobian,
)

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
LOSSES = {"ce": nn.CrossEntropyLoss, "bce": nn.BCEWithLogitsLoss, "mse": nn.MSELoss}
KINDS = {"Hessian": Hessian, "Gauss-Newton": GaussNewton, "Fisher": EmpiricalFisher}


def mlp(first, hidden, last, bend=nn.ReLU):
    layers = [nn.Linear(first, hidden), bend(), nn.Linear(hidden, last)]
    return nn.Sequential(*layers)


class Keyed(nn.Module):
    """Takes its inputs by name."""

    def __init__(self, classes, bend=nn.ReLU):
        super().__init__()
        self.net = mlp(10, 5, classes, bend)

    def forward(self, x):
        return self.net(x)


class Shared(nn.Module):
    """Weights shared over places: all places, their mean, or classes first."""

    def __init__(self, net, places="all"):
        super().__init__()
        self.net, self.places = net, places

    def forward(self, x):
        z = self.net(x)
        if self.places == "mean":
            return z.flatten(1, -2).mean(1)
        return z.movedim(-1, 1) if self.places == "classes first" else z


class Pixels(nn.Module):
    """A convolution, with channels last."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 2, 4, padding=2)

    def forward(self, x):
        return self.layer(x).movedim(1, -1)


def convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 3, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 6, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 10),
    )  # fmt: skip


def by_hand():
    """Return a function and its tensors in place of a module."""
    shapes = {"W1": (5, 10), "b1": (5,), "W2": (3, 5), "b2": (3,)}
    params = {name: torch.rand(shape) for name, shape in shapes.items()}

    def function(params, x):
        hidden = functional.linear(x, params["W1"], params["b1"]).relu()
        return functional.linear(hidden, params["W2"], params["b2"])

    return function, params


@dataclass(frozen=True)
class Case:
    """A model, its loss, and the shapes of its batches."""

    name: str
    model: Any
    loss: str
    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    batches: tuple[int, ...]
    reduction: str = "mean"

    @property
    def keyed(self):
        """Whether inputs come by name."""
        return "keyed" in self.name

    def make(self, dtype):
        """Return model, loss and batches in a type; the same numbers every time."""
        torch.manual_seed(0)
        model, loss = self.model(), LOSSES[self.loss](reduction=self.reduction)
        data = [(torch.rand(n, *self.inputs), self._targets(n)) for n in self.batches]
        if isinstance(model, nn.Module):
            model = model.to(dtype)
        else:
            model = (model[0], {k: t.to(dtype) for k, t in model[1].items()})
        data = [(x.to(dtype), y if self.loss == "ce" else y.to(dtype)) for x, y in data]
        if self.keyed:  # any mapping will do
            kinds = [UserDict, dict]
            data = [(k({"x": x}), y) for k, (x, y) in zip(kinds, data, strict=True)]
        return model, loss, data

    def _targets(self, samples):
        if self.loss != "ce":
            return torch.rand(samples, *self.targets)
        return torch.randint(0, self.targets[-1], (samples, *self.targets[:-1]))


def shared(net, places):
    return lambda: Shared(net(), places)


def linear_mlp(*widths):
    return partial(mlp, *widths, nn.Identity)


PLACES = {"all": (4, 8), "mean": ()}
PIXELS = {"all": (9, 9), "mean": ()}
# Name, model, loss, shapes of inputs and targets, batches; with a mean and with a sum.
BOTH = [
    ("ce", partial(mlp, 10, 5, 3), "ce", (10,), (3,), (3, 4)),
    ("mse", partial(mlp, 8, 5, 3), "mse", (8,), (3,), (2, 6)),
    ("bce-two", partial(mlp, 10, 5, 2), "bce", (10,), (2,), (3, 4)),
    (
        "places-ce",
        shared(partial(mlp, 10, 5, 3), "classes first"),
        *("ce", (5, 10), (5, 3), (3, 4)),
    ),
    ("places-bce", partial(mlp, 10, 5, 2), "bce", (5, 10), (5, 2), (3, 4)),
    ("places-mse", partial(mlp, 8, 5, 3), "mse", (5, 8), (5, 3), (2, 6)),
    ("deep", linear_mlp(6, 3, 1), "mse", (6,), (1,), (2, 5)),
    ("deep-many", linear_mlp(5, 4, 3), "mse", (5,), (3,), (1, 7)),
    ("deep-keyed", partial(Keyed, 3, nn.Identity), "mse", (10,), (3,), (1, 7)),
    ("deep-ce", linear_mlp(5, 4, 3), "ce", (5,), (3,), (1,)),
    ("deep-bce", linear_mlp(4, 3, 2), "bce", (4,), (2,), (1,)),
    ("layer", partial(nn.Linear, 6, 1), "mse", (6,), (1,), (5, 5)),
    ("layer-many", partial(nn.Linear, 5, 3), "mse", (5,), (3,), (7, 7)),
    *(
        (f"{name}-{places}", shared(net, places), "mse", (4, 8, 5), (*tail, 3), (2, 7))
        for places, tail in PLACES.items()
        for name, net in (
            ("deep", linear_mlp(5, 4, 3)),
            ("layer", partial(nn.Linear, 5, 3)),
        )
    ),
    *(
        (
            f"pixels-{places}-{sizes[0]}",
            shared(Pixels, places),
            *("mse", (3, 8, 8), (*tail, 2), sizes),
        )
        for places, tail in PIXELS.items()
        for sizes in ((2, 7), (8, 8))
    ),
]
MEANS = [
    ("bce-one", partial(mlp, 10, 5, 1), "bce", (10,), (1,), (3, 4)),
    ("keyed-ce", partial(Keyed, 3), "ce", (10,), (3,), (3, 4)),
    ("keyed-bce", partial(Keyed, 1), "bce", (10,), (1,), (3, 4)),
    ("keyed-mse", partial(Keyed, 2), "mse", (10,), (2,), (3, 4)),
    ("by-hand", by_hand, "mse", (10,), (3,), (3, 4)),
    ("convolutional", convolutional, "ce", (1, 20, 20), (10,), (5, 5)),
]
CASES = [Case(*row) for row in MEANS] + [
    Case(f"{name}-{reduction}", *row, reduction)
    for name, *row in BOTH
    for reduction in ("mean", "sum")
]
DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Oracle:
    """Dense matrices of all the data as one batch, in float64."""

    def __init__(self, case):
        model, self.loss, data = case.make(torch.float64)
        parts = [x["x"] if case.keyed else x for x, _ in data]
        self.x, self.y = torch.cat(parts), torch.cat([y for _, y in data])
        given = isinstance(model, nn.Module)
        self.params = dict(model.named_parameters()) if given else model[1]
        self.call = (
            (lambda p: torch.func.functional_call(model, p, (self.x,)))
            if given
            else (lambda p: model[0](p, self.x))
        )
        flats = [p.detach().reshape(-1) for p in self.params.values()]
        self.flat = torch.cat(flats)
        self.mean = case.reduction == "mean"

    def outputs(self, flat):
        parts = flat.split([p.numel() for p in self.params.values()])
        pairs = zip(self.params.items(), parts, strict=True)
        return self.call({name: part.view_as(p) for (name, p), part in pairs})

    def hessian(self):
        value = lambda flat: self.loss(self.outputs(flat), self.y)  # noqa: E731
        return torch.autograd.functional.hessian(value, self.flat, vectorize=True)

    def jacobian(self):
        rows = torch.autograd.functional.jacobian(
            self.outputs, self.flat, vectorize=True
        )
        return rows.reshape(-1, len(self.flat))

    def gauss_newton(self, rows):
        z = self.outputs(self.flat).detach()
        value = lambda flat: self.loss(flat.view_as(z), self.y)  # noqa: E731
        inner = torch.autograd.functional.hessian(value, z.reshape(-1))
        return rows.T @ inner @ rows

    def empirical_fisher(self, rows):
        """Return the second moment of the gradients of samples, or places."""
        z = self.outputs(self.flat).detach().requires_grad_()
        if isinstance(self.loss, nn.CrossEntropyLoss):
            single = z.movedim(1, -1).reshape(-1, z.shape[1]), self.y.reshape(-1)
        else:
            single = z, self.y
        slopes = []
        for pair in zip(*single, strict=True):
            value = self.loss(*(part[None] for part in pair))
            (slope,) = torch.autograd.grad(value, z, retain_graph=True)
            slopes.append(rows.T @ slope.reshape(-1))
        singles = torch.stack(slopes)
        return singles.T @ singles / (len(slopes) if self.mean else 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_in_both_precisions(case):
    oracle = Oracle(case)
    rows = oracle.jacobian()
    wanted = {
        "Hessian": oracle.hessian(),
        "Gauss-Newton": oracle.gauss_newton(rows),
        "Fisher": oracle.empirical_fisher(rows),
    }
    torch.manual_seed(1)
    block = torch.randn(len(oracle.flat), 2, dtype=torch.float64)
    for dtype in DTYPES.values():
        rtol = 1e-10 if dtype is torch.float64 else 1e-4
        model, loss, data = case.make(dtype)
        jacobian = Jacobian(model, data)
        near((jacobian @ block).double(), rows @ block, rtol)
        some = rows @ block
        near((jacobian.T @ some).double(), rows.T @ some, rtol)
        for name, kind in KINDS.items():
            operator = kind(model, data, loss=loss)
            exact = wanted[name]
            near((operator @ block).double(), exact @ block, rtol)
            first, last = operator.names[0], operator.names[-1]
            size = oracle.params[last].numel()
            part = operator[first, last] @ block[:size]
            height = oracle.params[first].numel()
            cut = exact[:height, -size:] @ block[:size]
            scale = float((exact @ block).abs().max())
            np.testing.assert_allclose(part.double(), cut, rtol=0, atol=rtol * scale)


def test_damped_inverses_of_every_case():
    for case in CASES:
        large = case.name == "convolutional" or case.name.startswith("pixels-all")
        if large or case.reduction == "sum":  # which is a multiple of the mean
            continue
        oracle = Oracle(case)
        exact = oracle.gauss_newton(oracle.jacobian())
        model, loss, data = case.make(torch.float64)
        operator = GaussNewton(model, data, loss=loss)
        eye = torch.eye(len(exact), dtype=torch.float64)
        b = torch.ones(len(exact), dtype=torch.float64)
        inverse = (operator + 2e-2 * Identity(operator)).inverse()
        near(inverse @ b, torch.linalg.solve(exact + 2e-2 * eye, b), rtol=1e-7)


def test_loaders_that_shuffle_give_one_operator_and_dropout_none():
    torch.manual_seed(0)
    x, y = torch.rand(12, 10), torch.randint(0, 2, (12,))
    norm = nn.Sequential(
        nn.Linear(10, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2)
    )
    vector = torch.ones(77)
    for model, size, drop in ((norm, 3, False), (mlp(10, 5, 2), 5, True)):
        loader = DataLoader(TensorDataset(x, y), size, shuffle=True, drop_last=drop)
        operator = Hessian(
            model, loader, loss=nn.CrossEntropyLoss(), norm_mode="batch"
        )  # fmt: skip
        v = vector[: operator.shape[1]]
        assert torch.equal(operator @ v, operator @ v)
    loader = DataLoader(TensorDataset(x, y), 3)
    drop = nn.Sequential(nn.Linear(10, 5), nn.Dropout(), nn.ReLU(), nn.Linear(5, 2))
    with pytest.raises(MeasurementError, match=r"[Dd]ropout"):
        Hessian(drop, loader, loss=nn.CrossEntropyLoss())


def test_the_page_says_how_many_there_are():
    found = re.search(r"\*\*(\d+) cases\*\*", PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert int(found[1]) == len(CASES) == len({case.name for case in CASES})


def test_the_page_uses_both_libraries_on_one_model():
    pytest.importorskip("curvlinops")
    (block,) = re.findall(
        r"^```python\n(from curv.*?)^```", PAGE.read_text(), re.M | re.S
    )
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    batch = torch.randn(16, 3, dtype=torch.float64), torch.randint(0, 2, (16,))
    given = {"model": model, "batch": batch, "b": np.ones(26), "nn": nn, "np": np}
    exec(block, given)
    assert given["failed"] == 0
