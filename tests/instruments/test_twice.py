"""Operators that are replaced keep their value and gain a right second derivative."""

import pytest
import torch
from torch import nn
from torch.autograd import gradgradcheck

from theodolite.instruments.differentiate.twice import differentiable_twice


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
    with differentiable_twice():
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
        with differentiable_twice():
            inside = layer(x)
        torch.testing.assert_close(inside, plain)
        assert "WeightNorm" not in type(inside.grad_fn.next_functions[2][0]).__name__


def test_attention_has_a_second_derivative():
    q = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)

    def attend(x):
        return nn.functional.scaled_dot_product_attention(x, x, x)

    with differentiable_twice():
        assert gradgradcheck(attend, (q,))
