r"""An affine map of each channel, $a r(x - c) + b$, with a cheap second derivative.

This is batch norm with given statistics: a mean $c$, and a variance with
the inverse root $r$, both constant. torch has its gradient as a fused kernel, which
pulls $g$ back to $a r g$ for $x$, to $r \sum g(x - c)$ for $a$ and to $\sum g$ for $b$;
with cotangents $\alpha, \alpha_a, \alpha_b$ of these the second derivative is

- for $g$: $a r \alpha + \alpha_a r(x - c) + \alpha_b$;
- for $x$: $\alpha_a r g$;
- for $a$: $r \sum \alpha g$.

These are torch's operators again, so that derivatives of any order are right.
"""

from typing import Any

import torch
from torch import Tensor

from .elementary_norms import other_axes, wide
from .model_backward import by_elements, inside_model_backward, own

# Number of channels up to which a GPU's fused kernel leaves it idle, and numbers
# per channel from which that costs more than plain passes over memory.
_FEW, _MANY = 128, 2**17


def affine_twice(
    x: Tensor, centre: Tensor, a: Tensor, b: Tensor, variance: Tensor | None = None
) -> Tensor:
    """Return a r (x − c) + b, channels on axis 1, differentiable by x, a and b.

    Args:
        x: The input.
        centre: Their mean, c.
        a: Their slopes.
        b: Their levels.
        variance: Their variance, 1/r²; 1 by default.
    """
    spread = torch.ones_like(centre) if variance is None else variance
    inverse = spread if variance is None else variance.rsqrt()
    return _Line.apply(x, centre, a, b, spread, inverse)  # pyright: ignore


@own
class _Line(torch.autograd.Function):
    """a r (x − c) + b."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        centre: Tensor,
        a: Tensor,
        b: Tensor,
        variance: Tensor,
        inverse: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(x, centre, a, variance, inverse)
        ctx.save_for_forward(x, centre, a, variance, inverse)
        return line(x, centre, a, b, variance)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, centre, a, variance, inverse = ctx.saved_tensors
        if inside_model_backward():
            gradients = _by_elements(grads[0], x, centre, a, inverse)
        elif torch.is_grad_enabled():
            gradients = _LineBackward.apply(grads[0], x, centre, a, variance, inverse)
        else:  # the last pass, which may be batched over many vectors
            gradients = pulled(grads[0], x, centre, a, variance, inverse)
        for_x, for_a, for_b = gradients  # pyright: ignore
        return for_x, None, for_a, for_b, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        x, centre, a, variance, inverse = ctx.saved_tensors
        along, _, of_a, of_b, *_ = tangents
        slope = wide(a * inverse, x)
        if of_a is None and of_b is None:
            return along * slope
        of_a = torch.zeros_like(a) if of_a is None else of_a
        of_b = torch.zeros_like(a) if of_b is None else of_b
        change = line(x, centre, of_a, of_b, variance)
        return change if along is None else change.addcmul_(along, slope)


@own
class _LineBackward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        g: Tensor,
        x: Tensor,
        centre: Tensor,
        a: Tensor,
        variance: Tensor,
        inverse: Tensor,
    ) -> Any:
        ctx.save_for_backward(g, x, centre, a, variance, inverse)
        ctx.slope, ctx.zeros = wide(a * inverse, x), torch.zeros_like(centre)
        return pulled(g, x, centre, a, variance, inverse)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        g, x, centre, a, variance, inverse = ctx.saved_tensors
        along, of_a, of_b = cotangents
        slope = wide(a * inverse, x) if torch.is_grad_enabled() else ctx.slope
        across = line(x, centre, of_a, of_b, variance)
        for_g = torch.addcmul(across, along, slope)
        for_x, for_a, _ = pulled(g, along, ctx.zeros, of_a, variance, inverse)
        return for_g, for_x, None, for_a, None, None


def line(x: Tensor, centre: Tensor, a: Tensor, b: Tensor, variance: Tensor) -> Tensor:
    """Return a r (x − c) + b: batch norm in eval mode."""
    return torch.native_batch_norm(x, a, b, centre, variance, False, 0.0, 0.0)[0]


def pulled(
    g: Tensor, x: Tensor, centre: Tensor, a: Tensor, variance: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a r g, the sum of r g (x − c) and the sum of g.

    Most of torch's kernels read the variance. Some read its inverse root, which is
    meant for training: the one for channels last on a GPU, for instance.
    """
    if _by_passes(g):
        axes = other_axes(g)
        across = ((x - wide(centre, x)) * g).sum(axes) * inverse
        return g * wide(a * inverse, g), across, g.sum(axes)
    return torch.ops.aten.native_batch_norm_backward(
        g, x, a, centre, variance, centre, inverse, False, 0.0, [True] * 3
    )


def _by_elements(
    g: Tensor, x: Tensor, centre: Tensor, a: Tensor, inverse: Tensor
) -> list[Any]:
    """Pull back by elementary operators, with a graph."""

    def sloped(x: Tensor, a: Tensor) -> Tensor:
        return (x - wide(centre, x)) * wide(a * inverse, x)

    axes = other_axes(g)
    return [*by_elements(sloped, [x, a], g), g.sum(axes)]


def _by_passes(g: Tensor) -> bool:
    """Return whether plain passes are faster than the fused kernel.

    On a GPU it has one block per channel, and few channels leave most of it idle: on an
    H200 16 channels of 2.6 million numbers each took eight times as long as passes.
    With channels last it has many blocks, and is the quicker one.
    """
    if g.device.type != "cuda" or not g.is_contiguous() or g.stride(1) == 1:
        return False
    channels = g.shape[1]
    return channels <= _FEW and g.numel() >= _MANY * channels
