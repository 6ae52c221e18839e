r"""Piecewise linear activations, whose second derivative is zero between kinks.

The rectifier $\max(x, 0)$ pulls $g$ back to $g\,[x > 0]$, which changes with $g$ only.
torch still fills a tensor with zeros for the change with $x$ and adds it to the rest:
two launches and four passes over the activations in every product. For the hard sigmoid
$\min(\max(x + 3, 0), 6)/6$ torch has no second derivative, and uses the float32 slope
1/6 also in float64 (2.13).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .model_backward import inside_model_backward, is_transformed, own

_IN_PLACE: tuple[Callable[..., Any], ...] = (torch.relu_, Tensor.relu_)
# The functions and methods that are replaced.
RECTIFIERS: tuple[Callable[..., Any], ...] = (
    functional.relu,
    torch.relu,
    Tensor.relu,
    *_IN_PLACE,
)


def rectifier(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call a rectifier of torch, with a double backward that skips zero terms.

    Calls with tensor subclasses and the like go to torch unchanged.
    """
    given = {**dict(zip(("input", "inplace"), args, strict=False)), **kwargs}
    x, in_place = given.pop("input", None), given.pop("inplace", func in _IN_PLACE)
    if given or not isinstance(in_place, bool) or not _ordinary(x, in_place=in_place):
        return func(*args, **kwargs)
    return _Rectified.apply(x, in_place)  # pyright: ignore[reportReturnType]


def hard_sigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Call the hard sigmoid of torch, with derivatives of any order."""
    if is_transformed() and not inplace:
        return (input + 3).clamp(0, 6) / 6
    if not _ordinary(input, in_place=inplace):
        return functional.hardsigmoid(input, inplace)
    return _HardSigmoid.apply(input, inplace)  # pyright: ignore[reportReturnType]


@own
class _HardSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, in_place: bool) -> Tensor:
        ctx.save_for_backward(((x > -3) & (x < 3)).to(x.dtype) / 6)
        if in_place:
            ctx.mark_dirty(x)
        return functional.hardsigmoid(x, inplace=in_place)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (slope,) = ctx.saved_tensors
        return grads[0] * slope, None


def _ordinary(x: Any, *, in_place: bool) -> bool:
    """Return whether a call records a graph of a plain tensor."""
    if type(x) is not Tensor or not (x.requires_grad and torch.is_grad_enabled()):
        return False
    plain = x.is_floating_point() and x.layout is torch.strided
    # torch knows which tensors may be written to.
    shared = in_place and (x.is_leaf or x._is_view())
    return plain and not (is_transformed() or shared)


@own
class _Rectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, in_place: bool) -> Tensor:
        if in_place:
            ctx.mark_dirty(x)
        out = x.relu_() if in_place else x.relu()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (out,) = ctx.saved_tensors
        return _masked(grads[0], out), None


@own
class _Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor, out: Tensor) -> Tensor:
        ctx.save_for_backward(out)
        return _where_above_zero(g, out)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        (out,) = ctx.saved_tensors
        return _masked(cotangents[0], out), None


def _masked(g: Tensor, out: Tensor) -> Tensor:
    if torch.is_grad_enabled() and not inside_model_backward():
        return _Masked.apply(g, out)  # pyright: ignore[reportReturnType]
    return _where_above_zero(g, out)  # the last pass, for one or many vectors


def _where_above_zero(g: Tensor, out: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward(g, out, 0)
