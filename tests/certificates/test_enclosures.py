"""Losses and layers stay in their enclosures, and a wrong bound does not pass."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from theodolite import networks
from theodolite.certificates import (
    functions,
    intervals,
    normalising,
    norms,
    series,
    softmax,
)
from theodolite.core import ResnetBlueprint, TwoBlockBlueprint
from theodolite.instruments import Problem

from .networks import LOSSES, NETWORKS, outside, problem

LENGTHS = st.floats(-6, 1).map(lambda power: 10.0**power)


QUICK = settings(max_examples=6, deadline=None)
MANY = settings(max_examples=120, deadline=None)


@pytest.mark.parametrize("network", NETWORKS)
@QUICK
@given(data=st.data())
def test_nothing_leaves_its_enclosure(network, data):
    check(network, data)


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@MANY
@given(data=st.data())
def test_nothing_of_thousands_leaves_its_enclosure(network, data):
    check(network, data)


def check(network, data):
    given = problem(
        network,
        data.draw(st.sampled_from(sorted(LOSSES))),
        seed=data.draw(st.integers(0, 10**6)),
        scale=data.draw(st.sampled_from([0.3, 1.0, 3.0])),
        dtype=data.draw(st.sampled_from([torch.float32, torch.float64])),
    )
    kind = data.draw(st.sampled_from(["gradient", "random", "one"]))
    found = outside(given, data.draw(LENGTHS), kind, data.draw(st.integers(0, 99)))
    assert not found


@pytest.mark.parametrize("steps", [0, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "plan",
    [
        TwoBlockBlueprint(skips=False),
        TwoBlockBlueprint(),
        TwoBlockBlueprint(added=1.0),
        ResnetBlueprint(blocks=(1, 1), width=4, channels=1),
        ResnetBlueprint(blocks=(1, 1), width=4, channels=1, added_identity=1.0),
    ],
    ids=["chain", "res", "average", "original", "modified"],
)
def test_networks_of_the_paper_along_training(plan, dtype, steps):
    model = networks.build(plan, seed=0).to(dtype)
    side = 28 if isinstance(plan, TwoBlockBlueprint) else 8
    x, y = torch.randn(4, 1, side, side, dtype=dtype), torch.arange(4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    given = Problem(model, (x, y), loss=criterion, norm_mode="batch")
    for length in (1e-4, 1e-3):
        assert not outside(given, length, points=3)


_BEND, _SQUARED = normalising._bend, intervals.Interval.squared
_SOFTMAX, _BACK = softmax._softmax, series._back
# Errors inside of rules, beside those of test_operators.py: the network, what is
# replaced, and by what.
PLANTED = {
    "batch_norm": (
        "batch_norm", normalising, "_bend", lambda *given: _BEND(*given).scaled(0.5),
    ),
    "cross_entropy": (
        "linear", softmax, "_softmax", lambda u, dim: _SOFTMAX(u, dim).scaled(0.9),
    ),
    "square": (
        "residual", intervals.Interval, "squared", lambda x: _SQUARED(x).scaled(0.5),
    ),
    "pull": (
        "tanh", series, "_back",
        lambda change, like: lambda by: _BACK(change, like)(by).scaled(0.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_wrong_bound_is_caught(kind, monkeypatch):
    network, place, name, wrong = PLANTED[kind]
    loss = "square" if kind != "cross_entropy" else kind

    def caught():
        return any(
            outside(problem(network, loss, seed=seed), length, way, seed)
            for seed in range(4)
            for way in ("gradient", "random")
            for length in (0.03, 0.3)
        )

    assert not caught()
    monkeypatch.setattr(place, name, wrong)
    assert caught()


TRUE = {
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "softplus": lambda x: mpmath.log(1 + mpmath.exp(x)),
    "gelu": lambda x: x * mpmath.ncdf(x),
    "elu": lambda x: x if x > 0 else mpmath.expm1(x),
}


@pytest.mark.parametrize("name", TRUE)
def test_functions_hold_what_fifty_digits_give(name):
    function = functions.SMOOTH.get(name) or getattr(functions, name)
    rng = np.random.default_rng(0)
    mid = rng.normal(size=200) * rng.choice([0.1, 1.0, 8.0], 200)
    if name in ("log", "sqrt", "rsqrt", "reciprocal"):
        mid = np.abs(mid) + 0.01
    rad = np.abs(mid) * rng.choice([0.0, 1e-12, 1e-3, 0.5], 200)
    x = intervals.Interval(torch.as_tensor(mid), torch.as_tensor(rad))
    parts = [[end.tolist() for end in one.ends()] for one in function(x)]
    with mpmath.workdps(50):
        for place in range(200):
            for at in (-1, -0.3, 0.6, 1):
                point = mpmath.mpf(mid[place]) + at * mpmath.mpf(rad[place])
                if name == "elu" and abs(point) < 1e-6:
                    continue
                true = mpmath.taylor(TRUE[name], point, 2)
                for (lower, upper), value in zip(parts, true, strict=True):
                    # Derivatives by differences have half the digits.
                    slack = mpmath.mpf(10) ** -14 * (value is not true[0])
                    assert lower[place] - slack <= value <= upper[place] + slack


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6), st.integers(0, 4))
def test_intervals_hold_exact_results(numbers, rounds):
    a, b, c, d = (torch.tensor([one], dtype=torch.float64) for one in numbers[:4])
    x, y = intervals.Interval(a, b.abs()), intervals.Interval(c, d.abs())
    results = {
        "sum": x + y, "product": x * y, "third": x.scaled(1 / 3), "square": x.squared(),
    }  # fmt: skip
    for side in (-1, 1):
        for other in (-1, 1):
            p = Fraction(a.item()) + side * Fraction(b.abs().item())
            q = Fraction(c.item()) + other * Fraction(d.abs().item())
            exact = {"sum": p + q, "product": p * q, "third": p / 3, "square": p * p}
            for name, result in results.items():
                lower, upper = (Fraction(end.item()) for end in result.ends())
                assert lower <= exact[name] <= upper, name


def test_products_of_matrices_hold_exact_results():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = (
            rng.normal(size=(5, 5)) * 10.0 ** rng.integers(-8, 8, (5, 5)) for _ in "ab"
        )
        x, y = (intervals.Interval(torch.as_tensor(one)) for one in (a, b))
        lower, upper = intervals.bilinear(
            torch.matmul, x, y, 5, norms.Matrices()
        ).ends()
        for i in range(5):
            for j in range(5):
                exact = sum(Fraction(a[i, k]) * Fraction(b[k, j]) for k in range(5))
                assert Fraction(lower[i, j].item()) <= exact
                assert exact <= Fraction(upper[i, j].item())
