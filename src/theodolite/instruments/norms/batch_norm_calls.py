"""Intercept and replace calls of batch norm that use batch statistics.

This works on the operator, not on modules, so that subclasses with a built-in
activation, functional calls and layers applied twice are all seen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError

from ..calls.listening import Listener
from ..differentiate.batch_norm_twice import (
    BATCH_NORMS,
    batch_norm_arguments,
    batch_norm_twice,
)
from ..differentiate.model_backward import is_transformed


@dataclass(frozen=True, kw_only=True)
class NormCall:
    """One call of batch norm in train mode.

    Attributes:
        place: Number of earlier calls in this pass.
        x: Its input, channels on axis 1.
        weight: Scale of each channel, or None.
        bias: Shift of each channel, or None.
        eps: Number added to variances.
    """

    place: int
    x: Tensor
    weight: Tensor | None
    bias: Tensor | None
    eps: float

    def by(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Normalise by given statistics; differentiate through them if possible."""
        shape = [-1 if axis == 1 else 1 for axis in range(self.x.ndim)]
        scale = (variance + self.eps).rsqrt()
        out = (self.x - mean.reshape(shape)) * scale.reshape(shape)
        if self.weight is not None:
            out = out * self.weight.reshape(shape)
        if self.bias is not None:
            out = out + self.bias.reshape(shape)
        return out

    def by_own(self) -> Tensor:
        """Normalise by the input's own statistics, and differentiate through them."""
        return batch_norm_twice(self.x, self.weight, self.bias, self.eps)


class BatchNormCalls(Listener):
    """Pass every call of batch norm in train mode to a function.

    If such listeners are nested, the innermost one gets the calls.

    Args:
        act: Returns the output of a call.

    Attributes:
        calls: Number of calls so far.
        transformed: Whether any call was inside a torch transform such as ``jvp``.
    """

    def __init__(self, act: Callable[[NormCall], Tensor]) -> None:
        self._act = act
        self.calls, self.transformed = 0, False

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, or let a batch norm be computed."""
        if function not in BATCH_NORMS:
            return function(*args, **kwargs)
        given = batch_norm_arguments(function, args, kwargs)
        x, weight = given["input"], given["weight"]
        if not given["training"] or not _fit(x, weight):
            return function(*args, **kwargs)
        place, self.calls = self.calls, self.calls + 1
        self.transformed = self.transformed or is_transformed()
        # For inputs in half precision torch computes statistics in the weight's type.
        wide = x if weight is None else x.to(weight.dtype)
        call = NormCall(
            place=place, x=wide, weight=weight, bias=given["bias"], eps=given["eps"]
        )
        return self._act(call).to(x.dtype)


def _fit(x: Tensor, weight: Tensor | None) -> bool:
    """Return whether torch accepts an input and a weight together."""
    half = x.dtype in (torch.float16, torch.bfloat16)
    return weight is None or weight.dtype == x.dtype or half


def own_statistics(call: NormCall) -> Tensor:
    """Normalise an input by its own statistics, even with one value per channel."""
    _refuse_fewer(call, 1)
    return call.by_own()


def batch_statistics(call: NormCall) -> Tensor:
    """Normalise a batch by its own statistics; refuse one value per channel."""
    _refuse_fewer(call, 2)
    return call.by_own()


def plain_statistics(call: NormCall) -> Tensor:
    """Do the same by torch's own operator, whose backward passes can be batched."""
    _refuse_fewer(call, 2)
    return torch.batch_norm(
        call.x, call.weight, call.bias, None, None, True, 0.0, call.eps, False
    )


def _refuse_fewer(call: NormCall, values: int) -> None:
    if call.x.numel() < values * call.x.shape[1]:
        few = "one" if call.x.numel() else "no"
        raise MeasurementError(
            f"batch norm got an input of shape {tuple(call.x.shape)}, {few} value a "
            "channel, which has no statistics: pass more samples a batch"
        )
