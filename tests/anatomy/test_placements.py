"""Norms and activations: which they are and where they stand."""

import pytest
import torch
from torch.nn import functional as F

from tests.anatomy.functions import of
from tests.anatomy.styles import images
from theodolite.anatomy import anatomy


def test_activations_and_norms_by_name():
    result = anatomy(images.Vgg(), torch.ones(2, 3, 16, 16))
    assert [(a.kind, a.piecewise_linear) for a in result.activations] == [
        ("hardtanh", True),
        ("max_pool2d", True),
        ("prelu", True),
        ("hardswish", False),
        ("softplus", False),
        ("where", True),
        ("clamp", True),
        ("abs", True),
    ]
    assert [norm.kind for norm in result.norms] == ["batch", "instance", "group"]


@pytest.mark.parametrize(
    ("function", "straight"),
    [
        (lambda x, a, b, c: F.relu(x) - 0.1 * F.relu(-x), True),
        (lambda x, a, b, c: x * (x > 0), True),
        (lambda x, a, b, c: torch.where(x > 0, x, 0.1 * x), True),
        (lambda x, a, b, c: torch.maximum(x, 0.1 * x), True),
        (lambda x, a, b, c: x * torch.sigmoid(x), False),
        (lambda x, a, b, c: x * x, False),
        (lambda x, a, b, c: 1 / (1 + x.abs()), False),
        (lambda x, a, b, c: x.std(1), False),
    ],
)
def test_activations_by_hand(function, straight):
    result = of(lambda x, a, b, c: c(x) if x is None else function(a(x), a, b, c))
    assert result.activations
    assert result.piecewise_linear is straight
    assert not result.others


def test_one_activation_by_hand_is_one():
    result = of(lambda x, a, b, c: 0.5 * x * (1 + torch.tanh(x + 0.04 * x.pow(3))))
    assert [(a.kind, a.piecewise_linear) for a in result.activations] == [
        ("handwritten", False)
    ]


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        (lambda x: F.rms_norm(x, (4,)), "rms"),
        (lambda x: F.normalize(x, dim=1), "rms"),
        (lambda x: F.local_response_norm(x[:, :, None], 3)[..., 0], "rms"),
        (lambda x: (x - x.mean(1, True)) / x.std(1, keepdim=True), "layer"),
        (lambda x: (x - x.mean(0)) * torch.rsqrt(x.var(0) + 1e-5), "batch"),
        (lambda x: F.instance_norm(x[:, None])[:, 0], "instance"),
        (lambda x: F.batch_norm(x, None, None, training=True), "batch"),
        (lambda x: F.group_norm(x, 2), "group"),
    ],
)
def test_norms_by_function_and_by_hand(norm, kind):
    result = of(lambda x, a, b, c: x + a(norm(x)).relu())
    assert [(n.kind, n.placement) for n in result.norms] == [(kind, "pre")]
    assert [a.kind for a in result.activations] == ["relu"]
    (addition,) = result.additions
    assert addition.branches[0].layout == ("norm", "linear", "activation")
    assert not result.others


def normed(x):
    return F.layer_norm(x, x.shape[-1:])


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (lambda x, a: normed(x + a(x).relu()), ["post", "post", "post"]),
        (lambda x, a: x + a(normed(x)).relu(), ["pre", "pre", "pre"]),
        (lambda x, a: x + normed(a(x).relu()), ["inside", "inside", "inside"]),
    ],
)
def test_norms_of_a_network_in_one_function(function, places):
    def run(x, *layers):
        for layer in layers:
            x = function(x, layer)
        return x

    result = of(run)
    assert [norm.placement for norm in result.norms] == places
    assert [norm.addition for norm in result.norms] == [0, 1, 2]


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (lambda x, a, b, c: normed(x + b(a(normed(x)).relu()) + c(x)), "after"),
        (lambda x, a, b, c: b(normed(x + a(normed(x)).relu()) * 2), "after"),
        (lambda x, a, b, c: normed(c(x + a(normed(x)).relu())), "final"),
    ],
)
def test_a_norm_behind_the_only_addition(function, place):
    result = of(function)
    assert [norm.placement for norm in result.norms] == ["pre", place]
