"""Operators that are replaced keep their value and gain a right second derivative."""

import pytest
import torch
from torch import nn
from torch.autograd import gradgradcheck

from tests.instruments.orders import as_instruments_do, orders
from theodolite.instruments.differentiate import affine_twice as affine_twice
from theodolite.instruments.differentiate import batch_norm_twice as batch_norm_given
from theodolite.instruments.differentiate.batch_norm_twice import batch_norm_twice
from theodolite.instruments.differentiate.derivatives import can_batch, pull_back_many


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_weight_norm(dim):
    shape = [1, 1, 1]
    v = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    if dim >= 0:
        shape[dim] = v.shape[dim]
    g = torch.randn(
        shape if dim >= 0 else (1,), dtype=torch.float64, requires_grad=True
    )
    plain = torch._weight_norm(v, g, dim)
    with as_instruments_do():
        torch.testing.assert_close(torch._weight_norm(v, g, dim), plain)
        assert gradgradcheck(lambda v, g: torch._weight_norm(v, g, dim), (v, g))


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_both_spellings_of_weight_norm_go_through():
    layers = [
        nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)),
        nn.utils.weight_norm(nn.Linear(2, 3)),
    ]
    x = torch.randn(4, 2)
    for layer in layers:
        plain = layer(x)
        with as_instruments_do():
            inside = layer(x)
        torch.testing.assert_close(inside, plain)
        assert "WeightNorm" not in type(inside.grad_fn.next_functions[2][0]).__name__


def test_attention_has_a_second_derivative():
    q = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)

    def attend(x):
        return nn.functional.scaled_dot_product_attention(x, x, x)

    with as_instruments_do():
        assert gradgradcheck(attend, (q,))


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2, 2)])
def test_batch_norm_on_given_statistics(shape, affine, passes, monkeypatch):
    monkeypatch.setattr(affine_twice, "_by_passes", lambda g: passes)
    monkeypatch.setattr(batch_norm_given, "_WORTH", 0)
    norm = (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(3, affine=affine)
    norm = norm.double().eval()
    made = torch.Generator().manual_seed(0)
    for tensor in norm.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand(3, generator=made) + 0.5)
    x = torch.randn(shape, generator=made, dtype=torch.float64).requires_grad_()
    parts = [x, *norm.parameters()]
    wanted = orders(lambda x, *_: norm(x), parts)
    with as_instruments_do():
        assert "_Line" in norm(x).grad_fn.name()
        assert gradgradcheck(norm, (x,))
        found = orders(lambda x, *_: norm(x), parts)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_second_derivatives_of_batch_norm_at_once(dtype):
    made = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, generator=made, dtype=dtype).requires_grad_()
        for shape in ((5, 3, 2, 2), (3,), (3,))
    )
    mixed = torch.nn.functional.conv2d(x, x[:3, :, :1, :1])
    out = batch_norm_twice(mixed, weight, bias, 1e-5).tanh().sum()
    (first,) = torch.autograd.grad(out, x, create_graph=True)
    assert can_batch(first, [x, weight, bias])


def test_parts_that_play_no_role_are_zero_in_float32():
    x, idle = torch.randn(3, requires_grad=True), torch.randn(2, requires_grad=True)
    found = pull_back_many(x.sin(), [x, idle], torch.eye(3), batched=True)
    torch.testing.assert_close(found[0], torch.diag(x.detach().cos()))
    torch.testing.assert_close(found[1], torch.zeros(3, 2))


ENDS = torch.tensor([4, 4, 8], dtype=torch.int32)
GROUPED = {
    "rows": ((8, 4), (3, 4, 8), ENDS),
    "columns": ((3, 8, 4), (4, 8), ENDS),
    "summed": ((8, 8), (8, 8), ENDS),
    "all": ((3, 8, 4), (3, 4, 8), None),
    "some rows": ((12, 4), (3, 4, 8), ENDS),
}


@pytest.mark.parametrize("name", GROUPED)
def test_grouped_products_in_float64_are_those_of_float32(name):
    first, second, ends = GROUPED[name]
    made = torch.Generator().manual_seed(0)
    a, b = torch.randn(first, generator=made), torch.randn(second, generator=made)
    counted = 8 if name == "some rows" else None
    wanted = torch.nn.functional.grouped_mm(a, b, offs=ends)[:counted]

    def product(a, b):
        return torch.nn.functional.grouped_mm(a, b, offs=ends)[:counted]

    wide = [part.double().requires_grad_() for part in (a, b)]
    with as_instruments_do():
        torch.testing.assert_close(product(*wide).float(), wanted)
        assert gradgradcheck(lambda a, b: product(a, b).square(), wide)
