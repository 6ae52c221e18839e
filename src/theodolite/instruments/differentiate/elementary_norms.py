"""Norms from elementary operators, which torch differentiates correctly to any order.

The third derivatives of torch's own batch, instance and layer norm are wrong (2.13). A
model that differentiates inside its forward pass needs them. The second derivative of
a norm with a bias and no weight is wrong or fails as well: it gets a weight of ones.
Channels are on axis 1, as in batch norm.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def wide(channel: Tensor, x: Tensor) -> Tensor:
    """Return one number per channel, in a shape that broadcasts with a tensor."""
    return channel.reshape([-1 if axis == 1 else 1 for axis in range(x.ndim)])


def other_axes(x: Tensor) -> list[int]:
    """Return all axes of a tensor except the channel axis."""
    return [axis for axis in range(x.ndim) if axis != 1]


GROUP_NORMS: tuple[Callable[..., Any], ...] = (functional.group_norm, torch.group_norm)
_GROUP_NAMES = ("input", "num_groups", "weight", "bias", "eps", "cudnn_enabled")


def group_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call group norm of torch, with a weight if it has a bias."""
    given = {**dict(zip(_GROUP_NAMES, args, strict=False)), **kwargs}
    return with_weight(func, given, args, kwargs)


def with_weight(
    func: Callable[..., Any],
    given: Mapping[str, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Tensor:
    """Call a norm, with a weight of ones if it has a bias and no weight.

    Args:
        func: The norm.
        given: All of its arguments by name.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """
    x, bias = given.get("input"), given.get("bias")
    if given.get("weight") is not None or not isinstance(bias, Tensor):
        return func(*args, **kwargs)
    if not isinstance(x, Tensor):
        return func(*args, **kwargs)
    # torch reports arguments that do not fit.
    if tuple(bias.shape) != tuple(given.get("normalized_shape", x.shape[1:2])):
        return func(*args, **kwargs)
    return func(**{**given, "weight": torch.ones_like(bias)})


def standardised(x: Tensor, axes: list[int], eps: float) -> Tensor:
    """Return an input minus its mean, divided by its deviation along some axes.

    Lower precision is converted to float32, as in torch's norms.
    """
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    centred = wide - wide.mean(axes, keepdim=True)
    variance = centred.square().mean(axes, keepdim=True)
    return centred * (variance + eps).rsqrt()


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g v / ‖v‖, the norm over all axes except one, or over all for dim −1."""
    if dim == -1:
        return v * (g / v.square().sum().sqrt())
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return v * (g / v.square().sum(axes, keepdim=True).sqrt())
