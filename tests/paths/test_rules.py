"""Every operator with a rule acts near the true pass as the operator itself."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from theodolite.core import MeasurementError
from theodolite.paths.propagate import adjoints, coefficients, values_at
from theodolite.paths.tracing import Tracer

torch.manual_seed(0)
WEIGHT, BIAS = torch.randn(4, 6).double(), torch.randn(4).double()
OTHER = torch.randn(2, 6).double()
KERNEL = torch.randn(2, 3, 3, 3).double()
STATS = torch.rand(3).double() + 0.5

# Of vectors (2, 6).
VECTORS = {
    "linear": lambda x: F.linear(x, WEIGHT, BIAS),
    "addmm of both": lambda x: torch.addmm(x, x, torch.ones(6, 6).double()),
    "matmul from the left": lambda x: OTHER.T @ x,
    "relu": torch.relu,
    "relu in place": lambda x: x.clone().relu_(),
    "leaky": lambda x: F.leaky_relu(x, 0.3),
    "leaky in place": lambda x: F.leaky_relu_(x * 1.0, 0.3),
    "prelu": lambda x: F.prelu(x, torch.tensor([0.2]).double()),
    "relu6": lambda x: F.relu6(4 * x),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.7),
    "hardsigmoid": lambda x: F.hardsigmoid(4 * x),
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    "clamp": lambda x: x.clamp(min=-0.2),
    "abs": torch.abs,
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "maximum of a constant": lambda x: torch.maximum(x, OTHER),
    "max along": lambda x: x.max(1).values,
    "amin": lambda x: x.amin(1, keepdim=True),
    "gate by mask": lambda x: x * (x > 0) + x * x.sign(),
    "where": lambda x: torch.where(x > 0, x, 1.0 + OTHER),
    "masked": lambda x: x.masked_fill(OTHER > 0, 3.0),
    "cat": lambda x: torch.cat([x, OTHER, 2 * x], 1),
    "stack": lambda x: torch.stack([x, OTHER]),
    "views": lambda x: x.view(3, 4).t()[1:, ::2].reshape(-1).unsqueeze(0).expand(2, 6),
    "split": lambda x: torch.split(x, 2, 1)[1] + x.unbind(1)[3][:, None],
    "sums": lambda x: 1 - x.sum(1) + x.mean() / 3 - OTHER[:, 0],
    "addcmul": lambda x: torch.addcmul(x, x * 2, OTHER, value=3),
    "broadcast": lambda x: x + x.mean(1, keepdim=True) * OTHER,
    "in-place sum": lambda x: x.clone().add_(x, alpha=2).mul_(3).sub_(1),
    "in-place mask": lambda x: x.clone().masked_fill_(OTHER > 0, 3.0),
    "in-place mix": lambda x: x.clone().addcmul_(x, OTHER, value=2),
    "reversed": lambda x: torch.rsub(x, OTHER, alpha=3) + torch.rsub(x, 2.0),
    "copy": lambda x: torch.empty_like(x).copy_(x[:1]) + x,
    "layer norm": lambda x: x + F.layer_norm(OTHER, (6,)),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, WEIGHT),
    "bmm": lambda x: torch.bmm(x[None], WEIGHT.T[None]),
    "baddbmm": lambda x: torch.baddbmm(BIAS, x[None], WEIGHT.T[None], beta=2, alpha=3),
}  # fmt: skip
# Of images (2, 3, 6, 6).
IMAGES = {
    "convolution": lambda x: F.conv2d(x, KERNEL, BIAS[:2], stride=2, padding=1),
    "transposed": lambda x: F.conv_transpose2d(x, KERNEL.transpose(0, 1)),
    "depthwise": lambda x: F.conv2d(x, KERNEL[:1].transpose(0, 1), groups=3),
    "max pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max pool, one axis": lambda x: F.max_pool1d(x.flatten(2), 4),
    "adaptive max pool": lambda x: F.adaptive_max_pool2d(x, 2),
    "average pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x, 4),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=0.5),
    "pad channels": lambda x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1)),
    "batch norm": lambda x: F.batch_norm(x, STATS, STATS, STATS, BIAS[:3]),
    "channels last": lambda x: F.adaptive_avg_pool2d(
        F.conv2d(x.contiguous(memory_format=torch.channels_last), KERNEL), 1
    ),
    "permuted": lambda x: F.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 1).flatten(1),
    "strided": lambda x: x.as_strided((2, 4), (108, 3), 1),
    "upsample": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
}


# Torch's own backward pass of this one has a sixth in single precision.
COARSE = {"hardsigmoid": 1e-7}


def traced(function, x, **options):
    tracer = Tracer(**options)
    tracer.follow(x)
    with torch.no_grad(), tracer:
        output = function(x)
    return tracer.tape(output)


def inputs(shape):
    return torch.randn(shape, dtype=torch.float64)


def check_nearby(function, x, atol=1e-12):
    """Value, small steps and gradient of a tape are those of the function."""
    tape = traced(function, x)
    with torch.no_grad():
        stack = coefficients(tape, {})
        torch.testing.assert_close(stack, function(x)[None], rtol=0, atol=1e-13)
        moved = x + 1e-6 * torch.randn_like(x)
        (number,) = tape.sources
        there = replace(tape, sources={number: moved})
        torch.testing.assert_close(
            values_at(there, lambda step, place: 1.0),
            function(moved),
            rtol=0,
            atol=1e-13,
        )
        cotangent = torch.randn_like(tape.value)
        result = adjoints(tape, {}, cotangent, tape.inputs)[number][0]
    leaf = x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(function(leaf), leaf, cotangent)
    torch.testing.assert_close(result, wanted, rtol=0, atol=atol)


@pytest.mark.parametrize("name", VECTORS)
def test_of_vectors(name):
    check_nearby(VECTORS[name], inputs((2, 6)), COARSE.get(name, 1e-12))


@pytest.mark.parametrize("name", IMAGES)
def test_of_images(name):
    check_nearby(IMAGES[name], inputs((2, 3, 6, 6)))


NORMS = {
    "batch": nn.BatchNorm2d(3).double(),
    "instance": nn.InstanceNorm2d(3, affine=True).double(),
    "group": nn.GroupNorm(3, 3).double(),
    "layer": nn.LayerNorm((3, 6, 6)).double(),
    "rms": nn.RMSNorm((6,)).double(),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_hold_their_statistics(name):
    """A norm of half the input is no longer half of it, by frozen statistics it is."""
    norm, x = NORMS[name], inputs((2, 3, 6, 6))
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    tape = traced(norm, x)
    torch.testing.assert_close(coefficients(tape, {})[0], norm(x).detach())
    (number,) = tape.sources
    at = [
        values_at(replace(tape, sources={number: x * t}), lambda step, place: 1.0)
        for t in (0.0, 0.5, 1.0)
    ]
    torch.testing.assert_close(at[1], (at[0] + at[2]) / 2)


def test_a_norm_by_hand_is_one_with_frozen_spread():
    def norm(x):
        centred = x - x.mean(1, keepdim=True)
        return centred / (centred.pow(2).mean(1, keepdim=True) + 1e-5).sqrt()

    x = inputs((2, 6))
    tape = traced(norm, x)
    torch.testing.assert_close(coefficients(tape, {})[0], norm(x))


SMOOTH = {
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "softplus": F.softplus,
    "sigmoid gate": lambda x: x * torch.sigmoid(x),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "softmax": lambda x: torch.softmax(x @ x.T, 1) @ x,
    "gate of channels": lambda x: x * torch.sigmoid(x.mean(0)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_gates_are_refused_or_frozen(name):
    x = inputs((2, 6))
    with pytest.raises(MeasurementError, match="is not piecewise linear, so"):
        traced(lambda x: x + SMOOTH[name](x), x)
    x[0, 0] = 0.0
    tape = traced(SMOOTH[name], x, linearise=True)
    assert tape.linearised
    torch.testing.assert_close(coefficients(tape, {})[0], SMOOTH[name](x))


def test_a_view_written_through_another_is_refused():
    def write(x):
        y = x * 2
        z = y.view(3, 4)
        z += 1
        return y

    with pytest.raises(MeasurementError, match="changed in place through another view"):
        traced(write, inputs((2, 6)))


def test_tokens_start_where_they_become_numbers():
    table = torch.randn(5, 3, dtype=torch.float64)
    tokens = torch.tensor([[0, 3], [2, 2]])
    tape = traced(lambda t: F.embedding(t, table) + 1.0, tokens)
    torch.testing.assert_close(coefficients(tape, {})[0], table[tokens] + 1)
    assert not tape.inputs
