"""Layer norms and smooth activations keep their value, and their second derivative."""

import pytest
import torch
from torch import nn
from torch.autograd import gradgradcheck
from torch.nn import functional

from tests.instruments.orders import as_instruments_do, orders
from theodolite.instruments.differentiate.derivatives import can_batch

ACTIVATIONS = {
    "gelu": functional.gelu,
    "gelu, named": lambda x: functional.gelu(input=x, approximate="none"),
    "tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "modules": nn.Sequential(nn.GELU(), nn.SiLU(), nn.GELU("tanh")),
}


def numbers(*shape, dtype=torch.float64):
    made = torch.Generator().manual_seed(0)
    return (2 * torch.randn(shape, generator=made, dtype=dtype)).requires_grad_()


def alike(found, wanted):
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    work, x = ACTIVATIONS[name], numbers(4, 3)
    wanted = orders(work, [x], count=2)
    with as_instruments_do():
        assert "_Activated" in work(x).grad_fn.name()
        assert gradgradcheck(work, (x,))
        alike(orders(work, [x], count=2), wanted)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(5,), (2, 5), (3, 2, 5)])
def test_layer_norms(shape, affine):
    norm = nn.LayerNorm(shape, elementwise_affine=affine).double()
    for place, part in enumerate(norm.parameters()):
        nn.init.normal_(part, generator=torch.Generator().manual_seed(place))
    x = numbers(3, 2, 5)
    parts = [x, *norm.parameters()]

    def work(x, *_):
        return norm(x)

    wanted = orders(work, parts, count=2)
    with as_instruments_do():
        assert "layer_norm_twice" in type(work(x).grad_fn)._forward_cls.__module__
        assert gradgradcheck(work, parts)
        alike(orders(work, parts, count=2), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_vectors_at_once(dtype):
    x, weight, bias = (numbers(*s, dtype=dtype) for s in ((4, 6), (6,), (6,)))
    with as_instruments_do():
        out = functional.layer_norm(x * x, (6,), weight, bias)
        out = functional.silu(functional.gelu(out)).sum()
        (first,) = torch.autograd.grad(out, x, create_graph=True)
    assert can_batch(first, [x, weight, bias])


def test_weights_alone():
    weight, bias, x = numbers(5), numbers(5) * 0.5, numbers(3, 5).detach()

    def work(weight, bias):
        return functional.layer_norm(x, (5,), weight, bias)

    bias = bias.detach().requires_grad_()
    wanted = orders(work, [weight, bias], count=2)
    with as_instruments_do():
        alike(orders(work, [weight, bias], count=2), wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: functional.silu(x * 1, inplace=True),
        lambda x: functional.gelu(x.half()),
        lambda x: functional.layer_norm(x.half(), (3,)),
        lambda x: functional.gelu(x.detach()),
        lambda x: torch.func.vmap(functional.gelu)(x),
    ],
)
def test_other_calls_are_left_to_torch(call):
    x = numbers(4, 3, dtype=torch.float32)
    wanted = call(x)
    with as_instruments_do():
        found = call(x)
    assert type(found.grad_fn) is type(wanted.grad_fn)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("inplace", [0, None])
def test_what_is_not_in_place_in_other_words(inplace):
    x = numbers(4)
    with as_instruments_do():
        found = functional.silu(x, inplace)
    torch.testing.assert_close(found, functional.silu(x))


def test_curvature_of_gelu_by_tanh_in_single_precision():
    """Where it cancels, and far out, where it is none."""

    def bend(x):
        with as_instruments_do():
            out = functional.gelu(x, approximate="tanh").sum()
            (slope,) = torch.autograd.grad(out, x, create_graph=True)
        return torch.autograd.grad(slope.sum(), x)[0]

    x = torch.linspace(-8, 8, 4001).requires_grad_()
    exact = bend(x.detach().double().requires_grad_())
    assert float((bend(x).double() - exact).abs().max()) < 5e-7
    far = torch.tensor([-1e9, -50.0, 50.0, 1e9]).requires_grad_()
    assert bend(far).tolist() == [0.0] * 4


def test_what_torch_refuses_it_refuses_still():
    x = numbers(4, 3)
    with as_instruments_do():
        with pytest.raises(RuntimeError, match="normalized_shape"):
            functional.layer_norm(x, (4,))
        for word in ("other", "silu", ""):
            with pytest.raises(RuntimeError, match="approximate"):
                functional.gelu(x, approximate=word)
