r"""Batch norm on given statistics with a cheap second derivative.

It is $y = s x + l$ in each channel, with $s = \gamma / \sqrt{v + \epsilon}$ and
$l = \beta - s \mu$. torch's own double backward is right but takes a dozen passes over
the activations, a third of a Hessian-vector product of a small convolutional net. The
gradient pulls $g$ back to $s g$, and to $\sum g x$ and $\sum g$ for $s$ and $l$. For
cotangents $a, a_s, a_l$ of these three,

- for $g$: $s a + a_s x + a_l$;
- for $x$: $a_s g$, and for $s$: $\sum a g$, which are what the gradient of $y = a_s a$
  pulls $g$ back to.

These are torch's operators again, so that derivatives of any order are right.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional

BATCH_NORMS: tuple[Callable[..., Any], ...] = (functional.batch_norm, torch.batch_norm)


def batch_norm_arguments(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of either spelling of batch norm, by name."""
    head = ("input", "running_mean", "running_var", "weight", "bias")
    if func is torch.batch_norm:
        head = ("input", "weight", "bias", "running_mean", "running_var")
    names = (*head, "training", "momentum", "eps")
    defaults = {"weight": None, "bias": None, "training": False, "eps": 1e-5}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def batch_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call batch norm of torch; on given statistics with a cheap second derivative.

    What is not an ordinary call on a processor torch itself is asked for.
    """
    given = batch_norm_arguments(func, args, kwargs)
    if given["training"] or not _ordinary(given):
        return func(*args, **kwargs)
    slope = (given["running_var"] + given["eps"]).rsqrt()
    if given["weight"] is not None:
        slope = slope * given["weight"]
    level = -slope * given["running_mean"]
    if given["bias"] is not None:
        level = level + given["bias"]
    return scaled(given["input"], slope, level)


def scaled(x: Tensor, slope: Tensor, level: Tensor) -> Tensor:
    """Return slope x + level, channel by channel."""
    return _Forward.apply(x, slope, level)  # pyright: ignore[reportReturnType]


def _ordinary(given: Mapping[str, Any]) -> bool:
    """Say whether a call records a graph of plain tensors of one type."""
    names = ("input", "running_mean", "running_var", "weight", "bias")
    tensors: list[Any] = [given[n] for n in names if given.get(n) is not None]
    plain = all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)
    if not plain or any(given.get(name) is None for name in names[:3]):
        return False
    nested = torch._C._are_functorch_transforms_active()
    if nested or forward_ad._current_level >= 0 or not torch.is_grad_enabled():
        return False
    x = tensors[0]
    here = x.device.type == "cpu" and x.layout is torch.strided and x.ndim > 1
    alike = len({(t.dtype, t.device) for t in tensors}) == 1
    fits = here and all(t.shape == x.shape[1:2] for t in tensors[1:])
    recorded = any(t.requires_grad for t in tensors) and x.numel() > 0
    return fits and alike and recorded and x.dtype in (torch.float32, torch.float64)


def _line(x: Tensor, slope: Tensor, level: Tensor) -> Tensor:
    zero, one = torch.zeros_like(slope), torch.ones_like(slope)
    return torch.batch_norm(x, slope, level, zero, one, False, 0.0, 0.0, False)


def _pulled(g: Tensor, x: Tensor, slope: Tensor) -> Sequence[Tensor]:
    """Return slope g, the sum of g x and the sum of g."""
    zero, one = torch.zeros_like(slope), torch.ones_like(slope)
    return torch.ops.aten.native_batch_norm_backward(
        g, x, slope, zero, one, None, None, False, 0.0, [True] * 3
    )


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: Tensor, level: Tensor) -> Any:
        ctx.save_for_backward(x, slope)
        return _line(x, slope, level)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _Backward.apply(grads[0], x, slope)
        # The last pass of a product, which may be one for many vectors at once.
        return tuple(_pulled(grads[0], x, slope))


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, slope: Tensor) -> Any:
        ctx.save_for_backward(g, x, slope)
        return tuple(_pulled(g, x, slope))

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        g, x, slope = ctx.saved_tensors
        a, a_slope, a_level = cotangents
        wide = a_slope.reshape([-1 if axis == 1 else 1 for axis in range(x.ndim)])
        for_g = torch.addcmul(_line(a, slope, a_level), x, wide)
        for_x, for_slope, _ = _pulled(g, a, a_slope)
        return for_g, for_x, for_slope
