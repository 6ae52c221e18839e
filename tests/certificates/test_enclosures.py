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
from theodolite.certificates import bends, functions, normalising, norms, tubes
from theodolite.certificates.enclosure import prepare
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
    length, seed = data.draw(LENGTHS), data.draw(st.integers(0, 99))
    start = data.draw(st.sampled_from([0.0, length / 3, 2.0]))
    assert not outside(given, length, kind, seed, start=start)


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


class Strides(nn.Module):
    """A kernel that is used with two strides, or with one."""

    def __init__(self, both):
        super().__init__()
        self.kernel = nn.Parameter(torch.ones(1, 1, 3, 3))
        self.both, self.end = both, nn.Identity()

    def forward(self, x):
        x = (x * self.kernel.sum()).tanh()
        first = torch.conv2d(x, self.kernel, stride=3).sum() if self.both else 0
        return first + self.end(torch.conv2d(x, self.kernel)).sum((1, 2, 3))


def test_a_kernel_with_two_strides_has_the_norm_of_each():
    data = torch.linspace(-1, 1, 162).reshape(2, 1, 9, 9), torch.zeros(2)
    gaps = []
    for both in (False, True):
        given = Problem(Strides(both), data, loss=nn.MSELoss(), norm_mode="as_is")
        layers = prepare(given).enclose([torch.ones(1, 1, 3, 3)], 0.0, 0.01)[1]
        gaps.append(layers["end"].gap)
    assert gaps[0] == gaps[1] > 0


MADE = tubes.made


@pytest.mark.parametrize(
    "network", ["tanh", "relu", "batch_norm", "max_pool", "linear"]
)
def test_bends_that_are_left_out_are_caught(network, monkeypatch):
    def made(form, inputs, gains, knots, own, weigh=None):
        given = weigh and (lambda by: (0.0, 0.0, weigh(by)[2]))
        return MADE(form, inputs, gains, knots, own, given)

    def caught():
        return any(
            "bends" in outside(problem(network, loss, seed=seed), length, way, seed)
            for loss in ("square", "cross_entropy")
            for seed in range(4)
            for way in ("gradient", "random")
            for length in (0.03, 0.3, 3.0)
        )

    assert not caught()
    monkeypatch.setattr(tubes, "made", made)
    monkeypatch.setattr(bends, "made", made)
    assert caught()


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


RULES = {
    "product": (((4, 3), (3, 5)), lambda x, w: tubes.bilinear(
        torch.matmul, x, w, 3, norms.Matrices())),
    "square": (((4, 3),), lambda x: x * x),
    "tanh": (((4, 3),), lambda x: functions.smooth(x, "tanh")),
    "softmax": (((4, 3),), lambda x: functions.softmax(x, 1)),
    "sum": (((4, 3),), lambda x: functions.log_sum_exp(x, 1)),
    "norm": (((4, 3),), lambda x: normalising.normalised(x, (0,), 1e-3)),
    "rectifier": (((4, 3),), bends.rectified),
    "largest": (((4, 3),), bends.largest),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.floats(-5, 0), gap=st.floats(-5, 0))
def test_rules_hold_all_errors_of_their_arguments(rule, seed, size, gap):
    """Their results, and what changes of derivatives add to products with them."""
    torch.manual_seed(seed)
    shapes, apply = RULES[rule]
    errors = [10.0**gap * drawn(*shape) for shape in shapes]
    inputs = []
    for shape, error in zip(shapes, errors, strict=True):
        a = drawn(*shape)
        b = a + 10.0**size * drawn(*shape)
        inputs.append(tubes.Tube(a, b, float(error.norm())))
    result = apply(*inputs)
    node, by = result.node, drawn(*result.a.shape)
    a = [one.a for one in node.inputs]
    if node.inputs[0] is not node.inputs[-1]:
        errors = errors[: len(node.inputs)]
    else:
        errors = errors * len(node.inputs)
    low, high, (share, _) = node.weigh(by)
    slopes = tubes.pulled(node.form, a, by, range(len(a)))
    for s in (0.0, 0.3, 0.5, 1.0):
        chord = [(1 - s) * one.a + s * one.b for one in node.inputs]
        moved = [x + e for x, e in zip(chord, errors, strict=True)]
        straight, there = node.form(*chord), node.form(*moved)
        bend = float((by * (straight - (1 - s) * result.a - s * result.b)).sum())
        slack = 1e-9 * float(by.norm())
        assert 4 * s * (1 - s) * low - slack <= bend <= 4 * s * (1 - s) * high + slack
        first = sum(float((x * e).sum()) for x, e in zip(slopes, errors, strict=True))
        rest = float((by * (there - straight)).sum()) - first
        assert abs(rest) <= share + slack
        away = there - (1 - s) * result.a - s * result.b
        assert float(away.norm()) <= result.gap * 1.0000001 + slack


NAMES = {"log_sigmoid": "log_sigmoid_forward"}
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
    rng = np.random.default_rng(0)
    mid = rng.normal(size=200) * rng.choice([0.1, 1.0, 8.0], 200)
    if name in ("log", "sqrt", "rsqrt", "reciprocal"):
        mid = np.abs(mid) + 0.01
    rad = np.abs(mid) * rng.choice([0.0, 1e-12, 1e-3, 0.5], 200)
    a = torch.as_tensor(mid)
    tube = functions.smooth(
        tubes.Tube(a, a + torch.as_tensor(rad)), NAMES.get(name, name)
    )
    form = tube.node.form
    with mpmath.workdps(50):
        off = [float(float(form(x)) - TRUE[name](mpmath.mpf(float(x)))) for x in a]
    assert np.linalg.norm(off) <= tube.node.own[1]
    (slopes,) = tube.node.gains
    slopes = torch.as_tensor(slopes).expand(a.shape)
    sizes = torch.as_tensor(rad)
    for at in np.linspace(0, 1, 9):
        x = (a + at * sizes).requires_grad_()
        (slope,) = torch.autograd.grad(form(x).sum(), x, create_graph=True)
        assert (slope.abs() <= slopes * (1 + 1e-9)).all()
        (second,) = torch.autograd.grad(slope.sum(), x)
        low, high, _ = tube.node.weigh(torch.ones_like(a))
        assert float((second.abs() * sizes**2).sum()) / 8 <= max(high, -low) * 1.0001


def test_split_products_round_as_a_single_operation_does():
    rng = np.random.default_rng(0)
    for scale in (0, 8):
        sizes = 10.0 ** rng.integers(-scale, scale + 1, (2, 5, 5))
        a, b = rng.normal(size=(2, 5, 5)) * sizes
        x, w = (tubes.constant(torch.as_tensor(one)) for one in (a, b))
        for exact in (False, True):
            form, own = torch.matmul, norms.Matrices()
            result = tubes.bilinear(form, x, w, 5, own, exact)
            off = [
                float(Fraction(float(result.a[i, j]))
                      - sum(Fraction(a[i, k]) * Fraction(b[k, j]) for k in range(5)))
                for i in range(5) for j in range(5)
            ]  # fmt: skip
            assert np.linalg.norm(off) <= result.slip
            if exact:
                assert result.slip < 3e-16 * float(result.a.norm())
