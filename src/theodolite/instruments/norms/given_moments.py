r"""Batch norm with moments as independent variables.

Notation: with $c$ the mean's number, held constant, the moments of a call are
$m = E[x - c]$, which is 0, and $q = E[(x - c)^2]$; the variance $q - m^2$ cancels
nothing. They are kept as one tensor of shape (2, channels).

Both functions use the affine map $a(x - c) + b$, channel by channel.
"""

from typing import Any

import torch
from torch import Tensor

from ..differentiate.affine_twice import affine_twice, pulled
from ..differentiate.model_backward import own
from .full_statistics import Moments


def as_variable(moments: Moments) -> Tensor:
    """Return the moments as one tensor."""
    return torch.stack([torch.zeros_like(moments.mean), moments.variance])


def shares_of(x: Tensor, moments: Moments) -> Tensor:
    """Return the share of an input of batch norm in the moments of all the data.

    Only its derivatives are used: its value is known from all chunks, and is 0 here.
    """
    return _Shares.apply(x, moments.mean, moments.count)  # pyright: ignore


def normalised(
    x: Tensor, variable: Tensor, moments: Moments, weight: Any, bias: Any, eps: float
) -> Tensor:
    """Normalise an input by moments, and differentiate through both."""
    weight = torch.ones_like(moments.mean) if weight is None else weight
    bias = torch.zeros_like(moments.mean) if bias is None else bias
    scale, level = _Scale.apply(variable, weight, bias, eps)  # pyright: ignore
    return affine_twice(x, moments.mean, scale, level)


@own
class _Scale(torch.autograd.Function):
    """The affine map of given moments: a = γ r and b = β − m a.

    With r the inverse deviation, whose change is −r³ (q' − 2 m m') / 2.
    """

    @staticmethod
    def forward(
        ctx: Any, variable: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> Any:
        ctx.save_for_backward(variable, weight)
        ctx.save_for_forward(variable, weight)
        ctx.eps = eps
        scale = weight * _inverse_deviation(variable, eps)
        return scale, bias - variable[0] * scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        variable, weight = ctx.saved_tensors
        of_scale, of_level = grads
        mean, inverse = variable[0], _inverse_deviation(variable, ctx.eps)
        of_scale = of_scale - mean * of_level
        of_square = -0.5 * of_scale * weight * inverse**3
        of_mean = -2 * mean * of_square - weight * inverse * of_level
        return torch.stack([of_mean, of_square]), of_scale * inverse, of_level, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        variable, weight = ctx.saved_tensors
        moved, of_weight, of_bias, _ = tangents
        mean, inverse = variable[0], _inverse_deviation(variable, ctx.eps)
        scale = torch.zeros_like(weight) if of_weight is None else of_weight * inverse
        level = torch.zeros_like(weight) if of_bias is None else of_bias
        if moved is not None:
            change = moved[1] - 2 * mean * moved[0]
            scale = scale - 0.5 * weight * inverse**3 * change
            level = level - weight * inverse * moved[0]
        return scale, level - mean * scale


def _inverse_deviation(variable: Tensor, eps: float) -> Tensor:
    mean, square = variable.unbind()
    return (square - mean.square() + eps).rsqrt()


@own
class _Shares(torch.autograd.Function):
    """The sums of x − c and of its square, divided by the number of all values."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, centre: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(x, centre)
        ctx.save_for_forward(x, centre)
        ctx.count = count
        return x.new_zeros(2, len(centre))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, centre = ctx.saved_tensors
        level, slope = (grads[0] / ctx.count).unbind()
        return affine_twice(x, centre, 2 * slope, level), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        x, centre = ctx.saved_tensors
        ones = torch.ones_like(centre)
        _, across, total = pulled(tangents[0], x, centre, ones, ones, ones)
        return torch.stack([total, 2 * across]) / ctx.count
