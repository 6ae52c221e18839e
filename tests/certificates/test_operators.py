"""A wrong bound of each operator that has a rule is caught."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from theodolite.certificates import bends
from theodolite.certificates.operators import Operators
from theodolite.certificates.tubes import Tube
from theodolite.instruments import HalfSquareLoss, Problem

from .networks import CLASSES, FEATURES, Applied, outside

SAMPLES, WIDTH = 7, 8
ATEN = torch.ops.aten
WEIGHTS = torch.linspace(-1, 1, WIDTH, dtype=torch.float64)
CLASS, PLACES = torch.arange(SAMPLES) % CLASSES, torch.tensor([3, 0, 0])
HALVES = torch.linspace(0.1, 0.9, SAMPLES * WIDTH, dtype=torch.float64).reshape(-1, 8)


def images(x):
    return x.reshape(len(x), 2, 2, 2)


def positive(x):
    return x * x + 1


def steep(x):
    return 4 * x


def named(names, home, before=lambda x: x, given=(), **options):
    """Return functions of torch by their names, with what they are given."""
    return {
        name: lambda x, name=name: getattr(home, name)(before(x), *given, **options)
        for name in names.split()
    }


# A function of seven samples of eight numbers that runs the operator, by its name.
CASES = {
    **named("abs exp neg relu sigmoid tanh clone detach t tril triu", torch),
    **named("log reciprocal rsqrt sqrt", torch, positive),
    **named("elu hardsigmoid hardswish hardtanh silu softplus", functional, steep),
    **named("alias _to_copy", ATEN),
    **named("view _unsafe_view", ATEN, given=((7, 2, 4),)),
    **named("cat stack", torch, lambda x: [x, x * x], given=(1,)),
    **named("unsqueeze", torch, given=(1,)),
    **named("sub rsub", torch, given=(WEIGHTS,), alpha=2),
    "_adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(images(x), (1, 2)),
    "_log_softmax": lambda x: x.log_softmax(1),
    "_native_batch_norm_legit": lambda x: ATEN._native_batch_norm_legit.no_stats(
        x, WEIGHTS, None, True, 0.1, 1e-5
    )[0],
    "_native_batch_norm_legit_no_training": lambda x: (
        ATEN._native_batch_norm_legit_no_training(
            x, WEIGHTS, None, WEIGHTS, WEIGHTS**2, 0.1, 1e-1
        )[0]
    ),
    "_softmax": lambda x: x.softmax(1),
    "_safe_softmax": lambda x: torch.ops.aten._safe_softmax(x, 1),
    "_weight_norm_interface": lambda x: (
        ATEN._weight_norm_interface(x, x.sum(1)[:, None], 0)[0]
    ),
    "add": lambda x: torch.add(x, x[0], alpha=2),
    "addmm": lambda x: torch.addmm(x[0], x, x.T @ x, beta=2, alpha=0.5),
    "avg_pool2d": lambda x: functional.avg_pool2d(images(x), 2, 1, 1),
    "baddbmm": lambda x: torch.baddbmm(images(x)[0], images(x)[1], images(x)[2]),
    "binary_cross_entropy_with_logits": lambda x: (
        functional.binary_cross_entropy_with_logits(x, HALVES)[None, None]
    ),
    "bmm": lambda x: images(x)[0] @ images(x)[1],
    "convolution": lambda x: functional.conv_transpose2d(
        images(x), images(x)[:2], stride=2, padding=1, dilation=2, groups=2
    ),
    "div": lambda x: x / positive(x),
    "dot": lambda x: x[0].dot(x[1])[None, None],
    "embedding": lambda x: functional.embedding(PLACES, x),
    "gelu": lambda x: functional.gelu(x) + functional.gelu(x, approximate="tanh"),
    "linalg_vector_norm": lambda x: torch.linalg.vector_norm(x, dim=1)[:, None],
    "masked_fill": lambda x: x.masked_fill(HALVES > 0.5, 2.0),
    "max_pool2d_with_indices": lambda x: functional.max_pool2d(images(x), 2),
    "mean": lambda x: x.mean(0, keepdim=True),
    "mm": lambda x: x @ x.T,
    "mse_loss": lambda x: functional.mse_loss(x, HALVES, reduction="sum")[None, None],
    "mul": lambda x: x * x[:, :1],
    "mv": lambda x: (x @ x[0])[None],
    "native_batch_norm": lambda x: functional.batch_norm(
        x, WEIGHTS * 0, WEIGHTS**2, x[0], x[1], training=True
    ),
    "native_group_norm": lambda x: functional.group_norm(images(x), 2, x[0, :2]),
    "native_layer_norm": lambda x: functional.layer_norm(x, (8,), x[0], x[1]),
    "nll_loss_forward": lambda x: functional.cross_entropy(
        x, CLASS, weight=WEIGHTS.abs(), ignore_index=1
    )[None, None],
    "pow": lambda x: x**3,
    "sum": lambda x: x.sum((0,), keepdim=True),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp_min": lambda x: x.clamp_min(0.1),
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.1),
    "log_sigmoid_forward": lambda x: functional.logsigmoid(x),
    "_reshape_alias": lambda x: ATEN._reshape_alias(x, (7, 2, 4), (8, 4, 1)),
    "constant_pad_nd": lambda x: functional.pad(x, (1, -2)),
    "diagonal": lambda x: x.diagonal()[None],
    "expand": lambda x: x[:, None].expand(7, 2, 8),
    "flip": lambda x: x.flip(0),
    "gather": lambda x: x.gather(1, PLACES.expand(7, 3)),
    "im2col": lambda x: functional.unfold(images(x), 2, padding=1),
    "index": lambda x: x[:, PLACES],
    "index_select": lambda x: x.index_select(1, PLACES),
    "lift_fresh": lambda x: ATEN.lift_fresh(x),
    "permute": lambda x: images(x).permute(0, 3, 1, 2),
    "pixel_shuffle": lambda x: functional.pixel_shuffle(x.reshape(7, 4, 1, 2), 2),
    "pixel_unshuffle": lambda x: functional.pixel_unshuffle(images(x), 2),
    "reflection_pad2d": lambda x: functional.pad(images(x), (1,) * 4, mode="reflect"),
    "repeat": lambda x: x.repeat(1, 2),
    "replication_pad2d": lambda x: functional.pad(
        images(x), (2,) * 4, mode="replicate"
    ),
    "roll": lambda x: x.roll(1, 1),
    "select": lambda x: x[:, 3][None],
    "slice": lambda x: x[:, 2:6],
    "split": lambda x: x.split(3, 1)[1],
    "split_with_sizes": lambda x: x.split([3, 5], 1)[1],
    "squeeze": lambda x: x[:, None].squeeze(1),
    "transpose": lambda x: images(x).transpose(1, 2),
    "unbind": lambda x: x.unbind(1)[1][None],
    "unfold": lambda x: x.unfold(1, 3, 2),
    "upsample_nearest2d": lambda x: functional.interpolate(images(x), scale_factor=2),
}  # fmt: skip
KINKS = "relu leaky_relu abs clamp clamp_min hardsigmoid hardswish hardtanh"


def around(name):
    torch.manual_seed(0)
    # Signals are curved along any line of weights.
    curved = Applied(lambda x: CASES[name](x + x.tanh()))
    layers = nn.Linear(FEATURES, WIDTH), curved, nn.Flatten()
    model = nn.Sequential(*layers).double()
    x = torch.randn(SAMPLES, FEATURES).double()
    y = torch.zeros_like(model(x)).detach()
    return Problem(model, (x, y), loss=HalfSquareLoss(), norm_mode="as_is")


def damaged(result, kind):
    """Return a result whose bounds, or whose value at the second knot, are wrong."""
    if not isinstance(result, Tube):
        return type(result)(one and damaged(one, kind) for one in result)
    if kind == "value":
        return replace(result, b=result.b * 1.001)
    return replace(result, gap=result.gap * 0.01, weighted=None)


def test_each_operator_with_a_rule_has_a_case():
    assert set(CASES) == Operators().names


@pytest.mark.parametrize("name", ["view", "_unsafe_view", "_reshape_alias"])
def test_shapes_change_whatever_the_order_in_memory_is(name):
    first = torch.arange(24.0, dtype=torch.float64).reshape(1, 2, 3, 4)
    u = Tube(first, first.to(memory_format=torch.channels_last))
    given = ([2, 12], [12, 1]) if name == "_reshape_alias" else ([2, 12],)
    operator = getattr(torch.ops.aten, name).default
    result = Operators()(operator, name, (u, *given), {})
    assert torch.equal(result.a, result.b)


@pytest.mark.parametrize("kind", ["gap", "value"])
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_rule_is_caught(name, kind, monkeypatch):
    given = around(name)
    right = Operators.__call__

    def wrong(self, operator, called, args, kwargs):
        result = right(self, operator, called, args, kwargs)
        return damaged(result, kind) if called == name else result

    assert not outside(given, 0.03, "random", points=4)
    monkeypatch.setattr(Operators, "__call__", wrong)
    assert outside(given, 0.03, "random", points=4)


@pytest.mark.parametrize("name", [*KINKS.split(), "max_pool2d_with_indices"])
def test_a_kink_that_is_left_out_is_caught(name, monkeypatch):
    given, kinked = around(name), bends.kinked

    def caught():
        lengths = (0.01, 0.1, 0.5)
        return any(
            outside(given, one, "random", at) for one in lengths for at in (1, 2)
        )

    assert not caught()
    monkeypatch.setattr(
        bends, "kinked", lambda form, u, own, *rest: kinked(form, u, 0 * own, *rest)
    )
    assert caught()
