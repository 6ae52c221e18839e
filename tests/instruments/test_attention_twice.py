"""Attention in plain products: the values of torch, and all of its derivatives."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from tests.instruments.orders import as_instruments_do, orders
from theodolite.instruments.differentiate import attention_twice as home
from theodolite.instruments.differentiate.derivatives import can_batch

ROWS = torch.tensor([[True, False, True, True], [False] * 4, [True, True, False, True]])
# Leading axes, rows, columns, width of queries and of values, and what else is given.
CALLS = {
    "plain": ((2, 2), 3, 3, 4, 4, {}),
    "one axis ahead": ((2,), 3, 4, 2, 5, {}),
    "three axes ahead": ((2, 1, 2), 2, 3, 2, 2, {"scale": 0.3}),
    "causal": ((1, 2), 4, 4, 3, 3, {"is_causal": True}),
    "causal, rectangular": ((1, 2), 3, 5, 3, 2, {"is_causal": True}),
    "rows that attend to nothing": ((1, 2), 3, 4, 2, 3, {"attn_mask": ROWS}),
    "a mask for each": ((2, 2), 3, 4, 2, 2, {"attn_mask": ROWS.expand(2, 1, 3, 4)}),
    "one for all rows": ((2, 2), 3, 4, 2, 2, {"attn_mask": ROWS[:1]}),
    "one for all": ((2, 2), 3, 4, 2, 2, {"attn_mask": torch.tensor(True)}),
    "one for each column": ((2, 2), 3, 4, 2, 2, {"attn_mask": ROWS[0]}),
    "added": ((2,), 2, 3, 2, 2, {"attn_mask": torch.arange(6.0).double().view(2, 3)}),
}


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(home, "quicker", lambda *_: True)


def _made(name):
    ahead, rows, columns, width, wide, options = CALLS[name]
    shapes = [(rows, width), (columns, width), (columns, wide)]
    made = torch.Generator().manual_seed(len(name))
    parts = [
        torch.randn(*ahead, *s, generator=made, dtype=torch.float64).requires_grad_()
        for s in shapes
    ]
    return (lambda q, k, v: scaled_dot_product_attention(q, k, v, **options)), parts


def _is_ours(out):
    return "_Forward" in out.grad_fn.next_functions[0][0].name()


@pytest.mark.parametrize("name", CALLS)
def test_all_orders_are_those_of_torch(name):
    work, parts = _made(name)
    with sdpa_kernel(SDPBackend.MATH):
        wanted = orders(work, parts)
    with as_instruments_do():
        assert _is_ours(work(*parts))
        found = orders(work, parts)
    for mine, theirs in zip(found, wanted, strict=True):
        scale = float(theirs.detach().abs().max())
        assert_close(mine, theirs, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("name", CALLS)
def test_by_differences(name):
    work, parts = _made(name)
    with as_instruments_do():
        assert gradcheck(work, parts, fast_mode=True)
        assert gradgradcheck(work, parts, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_at_once(dtype):
    work, parts = _made("rows that attend to nothing")
    parts = [part.detach().to(dtype).requires_grad_() for part in parts]
    with as_instruments_do():
        out = work(*parts)
        (first,) = torch.autograd.grad(out.tanh().sum(), parts[0], create_graph=True)
    assert can_batch(out, parts)
    assert can_batch(first, parts)


@pytest.mark.parametrize(
    "options",
    [
        {"dropout_p": 0.5},
        {"attn_mask": torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)},
        {"enable_gqa": True},
    ],
    ids=["dropout", "a mask to learn", "grouped queries"],
)
def test_the_rest_is_left_to_torch(options):
    q = torch.randn(1, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    with as_instruments_do():
        out = scaled_dot_product_attention(q, q, q, **options)
        assert not _is_ours(out)
        (first,) = torch.autograd.grad(out.sum(), q, create_graph=True)
        assert first.requires_grad


@pytest.mark.parametrize("options", [{}, {"attn_mask": torch.ones(3, 0).bool()}])
def test_no_keys_are_left_to_torch(options):
    q, k = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 0, 4)
    q.requires_grad_()
    with as_instruments_do():
        out = scaled_dot_product_attention(q, k, k, **options)
        (first,) = torch.autograd.grad(out.square().sum(), q, create_graph=True)
    assert not out.any()
    assert not first.any()


def test_masks_that_do_not_fit_are_torch_s_to_tell():
    q = torch.randn(1, 2, 3, 4, requires_grad=True)
    said = []
    for mask in (
        torch.zeros(5, 2, 3, 3),
        torch.zeros(2, 3),
        torch.zeros(1, 1, 1, 1, 3),
    ):
        for around in (sdpa_kernel(SDPBackend.MATH), as_instruments_do()):
            with around, pytest.raises(RuntimeError) as told:
                scaled_dot_product_attention(q, q, q, attn_mask=mask)
            said.append(str(told.value))
    assert said[::2] == said[1::2]


def test_mistakes_are_torch_s_to_tell():
    q = torch.randn(1, 2, 3, 2, requires_grad=True)
    mask = torch.ones(3, 3, dtype=torch.bool)
    with as_instruments_do(), pytest.raises(RuntimeError, match="is_causal"):
        scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=True)


@pytest.mark.parametrize(
    ("dtype", "rows", "wanted"),
    [
        (torch.float32, 256, True),
        (torch.float32, 8, False),
        (torch.float64, 256, False),
    ],
)
def test_on_a_processor_only_where_it_is_quicker(monkeypatch, dtype, rows, wanted):
    monkeypatch.undo()
    q = torch.randn(1, 1, rows, 2, dtype=dtype, requires_grad=True)
    with as_instruments_do():
        assert _is_ours(scaled_dot_product_attention(q, q, q)) is wanted
