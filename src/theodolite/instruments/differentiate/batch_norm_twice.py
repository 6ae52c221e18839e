r"""Batch norm in train mode with a cheap second derivative.

torch's own double backward is right but takes some thirty passes over the activations,
two fifths of a Hessian-vector product of a convolutional net. Here it takes ten.

Notation: a channel's $N$ values $x$ have mean $\mu$ and inverse deviation $r$;
$\hat x = r(x - \mu)$; $P(a) = a - \overline{a} - \hat x\,\overline{a \hat x}$.
The gradient of $y = \gamma \hat x + \beta$ pulls $g$ back to $\gamma u$ with
$u = r P(g)$, to $s = \sum g \hat x$ for $\gamma$ and to $\sum g$ for $\beta$. For
cotangents $a, a_\gamma, a_\beta$ of these three, with $t = r P(a)$,

- for $g$: $\gamma t + a_\gamma \hat x + a_\beta$;
- for $\gamma$: $\sum a u$;
- for $x$: $(a_\gamma - \gamma r \overline{a \hat x})\,u - \gamma (s/N)\,r\,t -
  \gamma r\,\overline{a u}\,\hat x$.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from theodolite.instruments.differentiate.channels import other_axes, wide
from theodolite.instruments.differentiate.elementary_norms import standardised
from theodolite.instruments.differentiate.line_twice import line
from theodolite.instruments.differentiate.own_passes import (
    by_elements,
    is_theirs,
    is_transformed,
)


def batch_norm_twice(x: Tensor, weight: Any, bias: Any, eps: float) -> Tensor:
    """Normalise by the input's own statistics, as batch norm in train mode does."""
    channels = x.shape[1]
    weight = x.new_ones(channels) if weight is None else weight
    bias = x.new_zeros(channels) if bias is None else bias
    if is_transformed():
        normed = standardised(x, other_axes(x), eps)
        return (normed * wide(weight, x) + wide(bias, x)).to(x.dtype)
    return _Forward.apply(x, weight, bias, eps)  # pyright: ignore[reportReturnType]


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Any:
        out, mean, scale = torch.native_batch_norm(
            x, weight, bias, None, None, True, 0.0, eps
        )
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, weight, mean, scale = ctx.saved_tensors
        if is_theirs():
            return *_by_elements(x, weight, grads[0], ctx.eps), None
        if not torch.is_grad_enabled():
            # The last pass of a product, which may be one for many vectors at once.
            return *_pull_back(grads[0], x, mean, scale, ctx.eps, weight), None
        return *_Backward.apply(grads[0], x, weight, mean, scale, ctx.eps), None


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        g: Tensor,
        x: Tensor,
        weight: Tensor,
        mean: Tensor,
        scale: Tensor,
        eps: float,
    ) -> Any:
        ones = torch.ones_like(mean)
        u, s, total = _pull_back(g, x, mean, scale, eps, ones)
        by = weight * scale / -(x.numel() // x.shape[1])
        # What is needed of the channels in every product.
        kept = (by, by * scale, wide(by * s, x), wide(weight, x))
        ctx.save_for_backward(x, mean, scale, u, *kept)
        ctx.eps, ctx.ones, ctx.zeros = eps, ones, torch.zeros_like(mean)
        return u * kept[-1], s, total

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *cotangents: Tensor
    ) -> Any:
        x, mean, scale, u, by, by_x, wide_s, wide_weight = ctx.saved_tensors
        a, a_weight, a_bias = cotangents
        t, across, _ = _pull_back(a, x, mean, scale, ctx.eps, ctx.ones)
        along = (a * u).sum(other_axes(x))
        # Multiples of x̂ are lines through the mean.
        for_g = line(x, mean, a_weight * scale, a_bias, ctx.ones)
        for_g = torch.addcmul(for_g, t, wide_weight)
        for_x = line(x, mean, by_x * along, ctx.zeros, ctx.ones)
        for_x = torch.addcmul(for_x, t, wide_s)
        factor = torch.addcmul(a_weight, by, across)
        for_x = torch.addcmul(for_x, u, wide(factor, x))
        return for_g, for_x, along, None, None, None


def _pull_back(
    g: Tensor, x: Tensor, mean: Tensor, scale: Tensor, eps: float, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return r P(g) times the weight, the sum of g x̂ and the sum of g."""
    return torch.ops.aten.native_batch_norm_backward(
        g, x, weight, None, None, mean, scale, True, eps, [True] * 3
    )


def _by_elements(x: Tensor, weight: Tensor, g: Tensor, eps: float) -> list[Any]:
    """Pull back with a graph."""
    axes = other_axes(x)

    def normed(x: Tensor, weight: Tensor) -> Tensor:
        return standardised(x, axes, eps) * wide(weight, x)

    return [*by_elements(normed, [x, weight], g), g.sum(axes)]
