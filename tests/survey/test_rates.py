"""Stable rates on quadratics, and preconditioners."""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from theodolite.instruments import HalfSquareLoss
from theodolite.survey import survey
from theodolite.survey.measures.optimizer_in_use import bound
from theodolite.survey.page.survey_page import survey_page as page_of

CURVATURES = torch.tensor([3.0, 1.0, 0.25], dtype=torch.float64)


def grows(make, rate, *, steps=400):
    """Tell whether an optimiser diverges on a quadratic; adaptive ones at fixed P."""
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    optimizer = make([w], rate)
    first = None
    for step in range(steps):
        optimizer.zero_grad()
        loss = 0.5 * (CURVATURES * w.square()).sum()
        loss.backward()
        optimizer.step()
        if step == 20:
            first = float(w.detach().norm())
    return float(w.detach().norm()) > first


def sgd(**settings):
    return lambda params, rate: torch.optim.SGD(params, lr=rate, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.5, "dampening": 0.3},
        {"momentum": 0.7, "nesterov": True},
    ],
)
def test_descent_diverges_just_above_its_bound_and_not_below(settings):
    rate = bound(**settings) / float(CURVATURES.max())
    assert not grows(sgd(**settings), 0.98 * rate)
    assert grows(sgd(**settings), 1.02 * rate)


def test_adam_with_its_preconditioner_held_diverges_at_38():
    """Adam's recursion with fixed scales: the running mean of gradients is damped."""
    beta = 0.9
    scales = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    top = float((CURVATURES / scales).max())
    for factor, diverges in ((0.98, False), (1.02, True)):
        rate = factor * bound(momentum=beta, dampening=beta) / top
        w, m = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
        for _ in range(2000):
            m = beta * m + (1 - beta) * CURVATURES * w
            w = w - rate * m / scales
        assert (float(w.norm()) > 10) is diverges
    assert_close(bound(momentum=0.9, dampening=0.9), 38.0)


@pytest.fixture(scope="module")
def regression():
    """Least squares in one layer, whose Hessian is the data's second moments."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    x = x * torch.tensor([2.0, 1.0, 0.3], dtype=torch.float64)
    y = torch.randn(64, 1, generator=generator, dtype=torch.float64)
    torch.manual_seed(0)
    return nn.Linear(3, 1, bias=False).double(), (x, y), x.T @ x / 64


def surveyed(model, batch, optimizer):
    return survey(
        model,
        batch,
        loss=HalfSquareLoss(),
        measures=["rates"],
        optimizer=optimizer,
        progress=False,
    )


@pytest.mark.parametrize(
    ("optimizer", "name", "factor"),
    [
        (sgd(), "gd", 2.0),
        (sgd(momentum=0.8), "momentum", 3.6),
        (sgd(momentum=0.8, nesterov=True), "momentum", 3.6 / 2.6),
    ],
)
def test_plain_rates_are_those_of_the_second_moments(
    regression, optimizer, name, factor
):
    model, batch, moments = regression
    top = float(np.linalg.eigvalsh(moments.numpy())[-1])
    result = surveyed(model, batch, optimizer(model.parameters(), 0.1))
    rate = result.number("stable_rate", optimizer=name)
    assert_close(rate["value"], factor / top, rtol=1e-8, atol=0.0)
    assert_close(result.number("rate_in_use")["value"], 0.1)
    over = result.number("rate_over_stable")["value"]
    assert_close(over, 0.1 * top / factor, rtol=1e-8, atol=0.0)


@pytest.mark.parametrize("kind", ["adam", "rmsprop"])
def test_adaptive_rates_use_the_optimizers_state(regression, kind):
    model, (x, y), moments = regression
    model = nn.Linear(3, 1, bias=False).double()
    make = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[kind]
    optimizer = make(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        HalfSquareLoss()(model(x), y).backward()
        optimizer.step()
    state = optimizer.state[model.weight]
    square = (
        state["exp_avg_sq"] / (1 - 0.999**3) if kind == "adam" else state["square_avg"]
    )
    root = square.sqrt().reshape(-1) + 1e-8
    matrix = (moments / root.sqrt() / root.sqrt()[:, None]).detach().numpy()
    top = float(np.linalg.eigvalsh(matrix)[-1])
    result = surveyed(model, (x, y), optimizer)
    row = result.number("stable_rate", optimizer=kind)
    factor = {"adam": 38.0, "rmsprop": 2.0}[kind]
    assert_close(row["value"], factor / top, rtol=1e-7, atol=0.0)


@pytest.mark.parametrize(
    ("make", "key", "factor"),
    [
        (torch.optim.Adagrad, "sum", 2.0),
        (torch.optim.NAdam, "exp_avg_sq", 38.0 / 2.8),
        (torch.optim.Adamax, "exp_inf", 38.0),
    ],
)
def test_kin_of_adam_have_bounds_and_scales_of_their_own(regression, make, key, factor):
    _, (x, y), moments = regression
    model = nn.Linear(3, 1, bias=False).double()
    optimizer = make(model.parameters(), lr=0.01)
    HalfSquareLoss()(model(x), y).backward()
    optimizer.step()
    state = optimizer.state[model.weight][key].reshape(-1)
    root = {"sum": state.sqrt(), "exp_inf": state}.get(key, (state / 1e-3).sqrt())
    matrix = (moments / root.sqrt() / root.sqrt()[:, None]).detach().numpy()
    result = surveyed(model, (x, y), optimizer)
    row = result.number("stable_rate", optimizer="adam")
    top = float(np.linalg.eigvalsh(matrix)[-1])
    assert_close(row["value"], factor / top, rtol=1e-6, atol=0.0)


def test_nadam_with_its_preconditioner_held_diverges_at_its_bound():
    beta, top = 0.9, float(CURVATURES.max())
    for factor, diverges in ((0.98, False), (1.02, True)):
        rate = factor * bound(momentum=beta, dampening=beta, nesterov=True) / top
        w, m = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
        for _ in range(2000):
            gradient = CURVATURES * w
            m = beta * m + (1 - beta) * gradient
            w = w - rate * (beta * m + (1 - beta) * gradient)
        assert (float(w.norm()) > 10) is diverges


def steps_grow(model, optimizer, batch, *, steps=400):
    """Tell whether training diverges from where it is."""
    x, y = batch
    start = [p.detach().clone() for p in model.parameters()]
    for _ in range(steps):
        optimizer.zero_grad()
        HalfSquareLoss()(model(x), y).backward()
        optimizer.step()
    moved = [p.detach() - s for p, s in zip(model.parameters(), start, strict=True)]
    return not max(float(each.abs().max()) for each in moved) < 100


@pytest.mark.parametrize(
    "unlike",
    [
        {"lr": 0.01},
        {"lr": 0.02, "momentum": 0.8},
        {"lr": 0.3, "momentum": 0.2, "weight_decay": 0.7},
    ],
)
def test_groups_of_unlike_rates_are_just_stable_at_the_ratio_of_1(regression, unlike):
    batch = regression[1]

    def made(factor):
        torch.manual_seed(0)
        model = nn.Linear(3, 1).double()
        groups = [
            {"params": [model.weight], **unlike},
            {"params": [model.bias], "lr": 0.9, "momentum": 0.5},
        ]
        for group in groups:
            group["lr"] *= factor
        return model, torch.optim.SGD(groups, lr=1.0)

    model, optimizer = made(1.0)
    row = surveyed(model, batch, optimizer).number("rate_over_stable")
    assert row["error"] < 1e-6 * row["value"]
    assert not steps_grow(*made(0.98 / row["value"]), batch)
    assert steps_grow(*made(1.02 / row["value"]), batch)
    # The rival that takes the largest rate for all is off.
    alike = torch.optim.SGD(model.parameters(), lr=0.9, momentum=0.5)
    rival = surveyed(model, batch, alike).number("rate_over_stable")
    assert abs(rival["value"] / row["value"] - 1) > 0.1


class Two(nn.Module):
    """A sum of two linear layers, each with a group of its own."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 1, bias=False)
        self.second = nn.Linear(3, 1, bias=False)

    def forward(self, x):
        return self.first(x) + self.second(x.abs())


def test_groups_of_adam_are_scaled_each_by_its_rate_and_state(regression):
    x, y = regression[1]
    torch.manual_seed(0)
    model, rates = Two().double(), (1e-3, 0.1)
    layers = (model.first, model.second)
    groups = [
        {"params": layer.parameters(), "lr": rate}
        for layer, rate in zip(layers, rates, strict=True)
    ]
    optimizer = torch.optim.Adam(groups, weight_decay=0.3)
    HalfSquareLoss()(model(x), y).backward()
    optimizer.step()
    squares = [optimizer.state[layer.weight]["exp_avg_sq"] for layer in layers]
    steps = [
        rate / ((square / 1e-3).sqrt().reshape(-1) + 1e-8)
        for rate, square in zip(rates, squares, strict=True)
    ]
    joined, scale = torch.cat([x, x.abs()], 1), torch.cat(steps).sqrt()
    matrix = joined.T @ joined / 64 + 0.3 * torch.eye(6, dtype=torch.float64)
    wanted = torch.linalg.eigvalsh(scale * matrix * scale[:, None])[-1] / 38
    row = surveyed(model, (x, y), optimizer).number("rate_over_stable")
    assert_close(row["value"], float(wanted), rtol=1e-6, atol=0.0)


def test_parameters_that_are_left_out_bound_no_rate(regression):
    model, batch = nn.Linear(3, 1).double(), regression[1]
    result = surveyed(model, batch, torch.optim.SGD([model.bias], lr=0.9))
    row = result.number("rate_over_stable")
    assert_close(row["value"], 0.9 / 2, rtol=1e-9, atol=0.0)  # of the bias H is 1
    assert_close(result.number("stable_rate")["value"], 2.0, rtol=1e-9, atol=0.0)


def flat_but_for_rounding(model, batch):
    """A loss that bends down by a million, and up by less than products round."""
    first, second, third = model.weight[0]  # turned, so that no product is exact
    one, other = first / 3 + second / 7 + third / 11, first / 7 - second / 3
    return 5e-4 * other.square() - 5e5 * one.square()


@pytest.mark.parametrize("loss", [flat_but_for_rounding, "l1"])
def test_rates_of_a_curvature_within_its_error_are_not_resolved(loss):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1, bias=False), torch.randn(16, 3)
    result = survey(
        model,
        (x, x[:, :1] + 100),  # so that the absolute error is linear
        loss=loss,
        measures=["rates"],
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        progress=False,
    )
    row = result.number("stable_rate", optimizer="gd")
    assert (row["value"], row["nonfinite"]) == (None, "not resolved")
    assert "gradient descent not resolved (in use 0.1)\n" in str(result)
    assert result.number("rate_in_use")["value"] == 0.1
    assert not result.find("rate_over_stable")
    assert not [f for f in result.findings if f.rule.startswith("rate-")]
    assert not result.advice
    for text in (page_of(result), str(result), str(result.to_dict())):
        assert "not resolved" in text
        assert not re.search(r"e\+300|10³⁰⁰", text)


def test_adam_that_made_no_step_has_no_stable_rate(regression):
    model, batch, _ = regression
    result = surveyed(model, batch, torch.optim.Adam(model.parameters()))
    assert result.outcome("rates").status == "refused"
    assert "Adam has made no step yet" in result.outcome("rates").reason


def test_without_an_optimizer_the_rate_is_that_of_gradient_descent(regression):
    model, batch, moments = regression
    row = surveyed(model, batch, None).number("stable_rate")
    top = float(torch.linalg.eigvalsh(moments)[-1])
    assert row["optimizer"] == "gd"
    assert_close(row["value"], 2.0 / top, rtol=1e-8, atol=0.0)
