r"""Smooth activations whose second derivative takes two passes per product.

An activation $f$ pulls $g$ back to $g f'(x)$, for which torch has a fused kernel. For a
cotangent $a$ of that, the second derivative is $a f'(x)$ for $g$, by the same kernel,
and $a\,g f''(x)$ for $x$. torch takes a dozen passes per product. Here $g f''(x)$ is
computed once and kept in place of $g$, in 0.1 to 1.0 times torch's time.

Notation: $\varphi$ and $\sigma$ are the normal density and the logistic function.
"""

from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .model_backward import by_elements, inside_model_backward, is_transformed, own

ACTIVATIONS: tuple[Callable[..., Any], ...] = (functional.gelu, functional.silu)
# Constants of the approximation $\tanh(k(x + c x^3))$.
_K, _C = sqrt(2 / pi), 0.044715
_GELUS = ("none", "tanh")
_FAR = 40.0  # beyond, GELU is linear, in float64 too


def activation(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call an activation of torch, with a second derivative in two passes.

    Calls of tensor subclasses and the like go to torch unchanged.
    """
    silu = func is functional.silu
    names = ("input", "inplace") if silu else ("input",)
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    kind = given.get("approximate", "none")
    if silu:
        kind = "silu" if given.get("inplace", False) is False else None
    known = kind == "silu" if silu else isinstance(kind, str) and kind in _GELUS
    if not known or not _ordinary(given.get("input")):
        return func(*args, **kwargs)
    return _Activated.apply(given["input"], kind)  # pyright: ignore


def _ordinary(x: Any) -> bool:
    """Return whether a call records a graph of a plain tensor."""
    if type(x) is not Tensor or not (x.requires_grad and torch.is_grad_enabled()):
        return False
    known = x.dtype in (torch.float32, torch.float64) and x.layout is torch.strided
    return known and not is_transformed()


def _gelu(x: Tensor) -> Tensor:
    """Return φ(x) (2 − x²)."""
    square = x.clamp(-_FAR, _FAR).square_()
    return (square * -0.5).exp_().mul_((2 - square).mul_(1 / sqrt(2 * pi)))


def _gelu_by_tanh(x: Tensor) -> Tensor:
    """Return (1 − T²)(u' + x u''/2 − x T u'²) with T = tanh(u)."""
    x = x.clamp(-_FAR, _FAR)
    square = x * x
    u = (x * (1 + _C * square)).mul_(_K)
    slope = _K * (1 + 3 * _C * square)
    bend = slope + 3 * _K * _C * square - x * u.tanh() * slope * slope
    # 1 − T² without cancellation.
    return torch.sigmoid(2 * u).mul_(torch.sigmoid(-2 * u)).mul_(4).mul_(bend)


def _silu(x: Tensor) -> Tensor:
    """Return σ (1 − σ)(2 + x (1 − 2σ))."""
    share = torch.sigmoid(x)
    return (2 + x * (1 - 2 * share)).mul_(share).mul_(1 - share)


_GELU, _SILU = torch.ops.aten.gelu_backward, torch.ops.aten.silu_backward
# For each activation: its value, its backward and its second derivative.
_BY_NAME: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]]
_BY_NAME = {
    "none": (functional.gelu, _GELU, _gelu),
    "tanh": (
        lambda x: functional.gelu(x, approximate="tanh"),
        lambda g, x: _GELU(g, x, approximate="tanh"),
        _gelu_by_tanh,
    ),
    "silu": (functional.silu, _SILU, _silu),
}


@own
class _Activated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: str) -> Tensor:
        ctx.save_for_backward(x)
        ctx.kind = kind
        return _BY_NAME[kind][0](x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if inside_model_backward():
            return *by_elements(_BY_NAME[ctx.kind][0], [x], grads[0]), None
        if torch.is_grad_enabled():
            return _Pulled.apply(grads[0], x, ctx.kind), None
        # The last pass, which may be batched over many vectors.
        return _BY_NAME[ctx.kind][1](grads[0], x), None


@own
class _Pulled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, kind: str) -> Tensor:
        _, pull, bend = _BY_NAME[kind]
        ctx.save_for_backward(x, bend(x).mul_(g))
        ctx.kind = kind
        return pull(g, x)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *cotangents: Tensor
    ) -> Any:
        x, bent = ctx.saved_tensors
        (a,) = cotangents
        return _BY_NAME[ctx.kind][1](a, x), a * bent, None
