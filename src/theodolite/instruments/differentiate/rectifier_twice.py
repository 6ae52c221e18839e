r"""The rectifier $\max(x, 0)$ whose second derivative leaves out what is zero.

It pulls $g$ back to $g\,[x > 0]$, which changes with $g$ alone. torch gives zeros for
the change with $x$ all the same, fills a tensor with them and adds it to the rest: two
launches and four passes over the activations in every product.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from theodolite.instruments.differentiate.own_passes import is_theirs, is_transformed

_IN_PLACE: tuple[Callable[..., Any], ...] = (torch.relu_, Tensor.relu_)
# The spellings that are replaced.
RECTIFIERS: tuple[Callable[..., Any], ...] = (
    functional.relu,
    torch.relu,
    Tensor.relu,
    *_IN_PLACE,
)


def rectifier(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call a rectifier of torch, with the second derivative that is not zero alone.

    What is not an ordinary call torch itself is asked for.
    """
    given = {**dict(zip(("input", "inplace"), args, strict=False)), **kwargs}
    x, in_place = given.pop("input", None), given.pop("inplace", func in _IN_PLACE)
    if given or not isinstance(in_place, bool) or not _ordinary(x, in_place=in_place):
        return func(*args, **kwargs)
    return _Rectified.apply(x, in_place)  # pyright: ignore[reportReturnType]


def _ordinary(x: Any, *, in_place: bool) -> bool:
    """Say whether a call records a graph of a plain tensor."""
    if type(x) is not Tensor or not (x.requires_grad and torch.is_grad_enabled()):
        return False
    plain = x.is_floating_point() and x.layout is torch.strided
    # torch knows what may be written to.
    shared = in_place and (x.is_leaf or x._is_view())
    return plain and not (is_transformed() or shared)


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
    if torch.is_grad_enabled() and not is_theirs():
        return _Masked.apply(g, out)  # pyright: ignore[reportReturnType]
    return _where_above_zero(g, out)  # the last pass, be it for many vectors at once


def _where_above_zero(g: Tensor, out: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward(g, out, 0)
