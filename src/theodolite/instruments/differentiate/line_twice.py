r"""A line in each channel, $a(x - c) + b$, with a cheap second derivative.

It is what batch norm does by statistics that are given. torch has its gradient as a
fused kernel, which pulls $g$ back to $ag$ for $x$, to $\sum g(x - c)$ for $a$ and to
$\sum g$ for $b$; with cotangents $\alpha, \alpha_a, \alpha_b$ of these the second
derivative is

- for $g$: $a\alpha + \alpha_a(x - c) + \alpha_b$;
- for $x$: $\alpha_a g$;
- for $a$: $\sum \alpha g$.

These are torch's operators again, so that derivatives of any order are right.
"""

from typing import Any

import torch
from torch import Tensor

# Channels up to which a card's fused kernel leaves it idle, and numbers in each of them
# from which that costs more than passes over memory do.
_FEW, _MANY = 128, 2**17


def line_twice(x: Tensor, centre: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return a (x − c) + b, channels on axis 1, differentiated by all but c."""
    return _Line.apply(x, centre, a, b)  # pyright: ignore[reportReturnType]


class _Line(torch.autograd.Function):
    """a (x − c) + b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, centre: Tensor, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, centre, a)
        ctx.save_for_forward(x, centre, a)
        ctx.ones = torch.ones_like(centre)
        return line(x, centre, a, b, ctx.ones)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, centre, a = ctx.saved_tensors
        if torch.is_grad_enabled():
            found = _LineBackward.apply(grads[0], x, centre, a, ctx.ones)
        else:  # the last pass, which may be one for many vectors at once
            found = pulled(grads[0], x, centre, a, ctx.ones)
        for_x, for_a, for_b = found  # pyright: ignore
        return for_x, None, for_a, for_b

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        x, centre, a = ctx.saved_tensors
        along, _, of_a, of_b = tangents
        if of_a is None and of_b is None:
            return along * _wide(a, x)
        of_a = torch.zeros_like(a) if of_a is None else of_a
        of_b = torch.zeros_like(a) if of_b is None else of_b
        change = line(x, centre, of_a, of_b, ctx.ones)
        return change if along is None else change.addcmul_(along, _wide(a, x))


class _LineBackward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, centre: Tensor, a: Tensor, ones: Tensor
    ) -> Any:
        ctx.save_for_backward(g, x, centre, a)
        ctx.ones = ones
        return pulled(g, x, centre, a, ones)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        g, x, centre, a = ctx.saved_tensors
        along, of_a, of_b = cotangents
        across = line(x, centre, of_a, of_b, ctx.ones)
        for_g = torch.addcmul(across, along, _wide(a, x))
        for_x, for_a = _products(g, along, of_a, ctx.ones)
        return for_g, for_x, None, for_a, None


def line(x: Tensor, centre: Tensor, a: Tensor, b: Tensor, ones: Tensor) -> Tensor:
    """Return a (x − c) + b: batch norm in eval mode, of variance 1."""
    return torch.native_batch_norm(x, a, b, centre, ones, False, 0.0, 0.0)[0]


def pulled(
    g: Tensor, x: Tensor, centre: Tensor, a: Tensor, ones: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a g, the sum of g (x − c) and the sum of g."""
    if _by_passes(g):
        axes = [axis for axis in range(g.ndim) if axis != 1]
        across = (x - _wide(centre, x)).mul_(g)
        return g * _wide(a, g), across.sum(axes), g.sum(axes)
    return torch.ops.aten.native_batch_norm_backward(
        g, x, a, centre, ones, centre, ones, False, 0.0, [True] * 3
    )


def _by_passes(g: Tensor) -> bool:
    """Say whether plain passes are quicker than the fused kernel.

    On a card that has a block a channel, and few channels leave most of it idle: on an
    H200 16 channels of 2.6 million numbers each took eight times as long as passes.
    With channels last it has many blocks, and is the quicker one.
    """
    if g.device.type != "cuda" or not g.is_contiguous():
        return False
    channels = g.shape[1]
    return channels <= _FEW and g.numel() >= _MANY * channels


def _products(
    g: Tensor, along: Tensor, of_a: Tensor, ones: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what the gradient of a line along a cotangent pulls back to."""
    if g.device.type == "cuda":  # whose fused kernel has a block a channel
        axes = [axis for axis in range(g.ndim) if axis != 1]
        return g * _wide(of_a, g), (g * along).sum(axes)
    for_x, for_a, _ = pulled(g, along, torch.zeros_like(ones), of_a, ones)
    return for_x, for_a


def _wide(channel: Tensor, x: Tensor) -> Tensor:
    return channel.reshape([-1 if axis == 1 else 1 for axis in range(x.ndim)])
