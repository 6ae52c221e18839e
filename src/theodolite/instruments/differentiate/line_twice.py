r"""A line in each channel, $a r(x - c) + b$, with a cheap second derivative.

It is what batch norm does by statistics that are given: a mean $c$, and a variance with
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

# Channels up to which a card's fused kernel leaves it idle, and numbers in each of them
# from which that costs more than passes over memory do.
_FEW, _MANY = 128, 2**17


def line_twice(
    x: Tensor, centre: Tensor, a: Tensor, b: Tensor, variance: Tensor | None = None
) -> Tensor:
    """Return a r (x − c) + b, channels on axis 1, differentiated by x, a and b.

    Args:
        x: What has the channels.
        centre: Their mean, c.
        a: Their slopes.
        b: Their levels.
        variance: Their variance, 1/r²; 1 by default.
    """
    variance = torch.ones_like(centre) if variance is None else variance
    return _Line.apply(x, centre, a, b, variance)  # pyright: ignore[reportReturnType]


class _Line(torch.autograd.Function):
    """a r (x − c) + b."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, centre: Tensor, a: Tensor, b: Tensor, variance: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, centre, a, variance)
        ctx.save_for_forward(x, centre, a, variance)
        return line(x, centre, a, b, variance)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, centre, a, variance = ctx.saved_tensors
        if torch.is_grad_enabled():
            found = _LineBackward.apply(grads[0], x, centre, a, variance)
        else:  # the last pass, which may be one for many vectors at once
            found = pulled(grads[0], x, centre, a, variance)
        for_x, for_a, for_b = found  # pyright: ignore
        return for_x, None, for_a, for_b, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        x, centre, a, variance = ctx.saved_tensors
        along, _, of_a, of_b, _ = tangents
        slope = _slope(a, variance, x)
        if of_a is None and of_b is None:
            return along * slope
        of_a = torch.zeros_like(a) if of_a is None else of_a
        of_b = torch.zeros_like(a) if of_b is None else of_b
        change = line(x, centre, of_a, of_b, variance)
        return change if along is None else change.addcmul_(along, slope)


class _LineBackward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, centre: Tensor, a: Tensor, variance: Tensor
    ) -> Any:
        ctx.save_for_backward(g, x, centre, a, variance)
        ctx.slope, ctx.zeros = _slope(a, variance, x), torch.zeros_like(centre)
        return pulled(g, x, centre, a, variance)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        g, x, centre, a, variance = ctx.saved_tensors
        along, of_a, of_b = cotangents
        slope = _slope(a, variance, x) if torch.is_grad_enabled() else ctx.slope
        across = line(x, centre, of_a, of_b, variance)
        for_g = torch.addcmul(across, along, slope)
        for_x, for_a, _ = pulled(g, along, ctx.zeros, of_a, variance)
        return for_g, for_x, None, for_a, None


def line(x: Tensor, centre: Tensor, a: Tensor, b: Tensor, variance: Tensor) -> Tensor:
    """Return a r (x − c) + b: batch norm in eval mode."""
    return torch.native_batch_norm(x, a, b, centre, variance, False, 0.0, 0.0)[0]


def pulled(
    g: Tensor, x: Tensor, centre: Tensor, a: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a r g, the sum of r g (x − c) and the sum of g."""
    if _by_passes(g):
        axes, by = [axis for axis in range(g.ndim) if axis != 1], variance.rsqrt()
        across = ((x - _wide(centre, x)) * g).sum(axes) * by
        return g * _wide(a * by, g), across, g.sum(axes)
    return torch.ops.aten.native_batch_norm_backward(
        g, x, a, centre, variance, centre, variance, False, 0.0, [True] * 3
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


def _slope(a: Tensor, variance: Tensor, x: Tensor) -> Tensor:
    return _wide(a * variance.rsqrt(), x)


def _wide(channel: Tensor, x: Tensor) -> Tensor:
    return channel.reshape([-1 if axis == 1 else 1 for axis in range(x.ndim)])
