r"""Batch norm by moments that are variables of their own.

Notation: with $c$ the mean's number, held constant, the moments of a call are
$m = E[x - c]$, which is 0, and $q = E[(x - c)^2]$; the variance $q - m^2$ cancels
nothing. They are kept as one tensor of shape (2, channels).
"""

from typing import Any

import torch
from torch import Tensor

from theodolite.instruments.norms.full_statistics import Moments


def as_variable(moments: Moments) -> Tensor:
    """Return the moments as one tensor."""
    return torch.stack([torch.zeros_like(moments.mean), moments.variance])


def shares_of(x: Tensor, moments: Moments) -> Tensor:
    """Return what an input of batch norm adds to the moments of all the data."""
    axes = [axis for axis in range(x.ndim) if axis != 1]
    centred = x - _wide(moments.mean, x)
    return torch.stack([centred.sum(axes), centred.square().sum(axes)]) / moments.count


def normalised(
    x: Tensor,
    variable: Tensor,
    moments: Moments,
    weight: Any,
    bias: Any,
    eps: float,
) -> Tensor:
    """Normalise an input by moments, differentiated through both."""
    mean, square = variable.unbind()
    scale = (square - mean.square() + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    level = -mean * scale
    if bias is not None:
        level = level + bias
    centred = x - _wide(moments.mean, x)
    return torch.addcmul(_wide(level, x), centred, _wide(scale, x))


def _wide(channel: Tensor, x: Tensor) -> Tensor:
    return channel.reshape([-1 if axis == 1 else 1 for axis in range(x.ndim)])
