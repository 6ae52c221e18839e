r"""Layer norm with a cheap second derivative.

torch's own double backward is right but takes some forty operators per norm in every
product. Here it takes half of them, most of them fused kernels.

Notation: a sample's $N$ values $x$ have mean $\mu$ and inverse deviation $r$;
$\hat x = r(x - \mu)$; $P(a) = a - \overline{a} - \hat x\,\overline{a \hat x}$.
The gradient of $y = \gamma \hat x + \beta$ pulls $g$ back to $u = r P(\gamma g)$, to
$\sum g \hat x$ for $\gamma$ and to $\sum g$ for $\beta$, sums over samples. For
cotangents $a, a_\gamma, a_\beta$ of these three, with $t = r P(a)$,

- for $g$: $\gamma t + a_\gamma \hat x + a_\beta$;
- for $\gamma$: $\sum g t$;
- for $x$: $r P(a_\gamma g) - r(\overline{\gamma g \hat x}\,t + \overline{a \hat x}\,u +
  \overline{a u}\,\hat x)$.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .elementary_norms import standardised, with_weight
from .model_backward import by_elements, inside_model_backward, is_transformed, own

LAYER_NORMS: tuple[Callable[..., Any], ...] = (functional.layer_norm, torch.layer_norm)
_NAMES = ("input", "normalized_shape", "weight", "bias", "eps", "cudnn_enable")


def layer_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call layer norm of torch, with a cheap second derivative.

    Within torch's transforms it uses elementary operators. Calls with tensor subclasses
    and the like go to torch unchanged.
    """
    given = {**dict(zip(_NAMES, args, strict=False)), **kwargs}
    x: Any = given.get("input")
    shape: Any = given.get("normalized_shape")
    weight, bias = given.get("weight"), given.get("bias")
    if not torch.is_grad_enabled() or not _plain(x, shape, weight, bias):
        return func(*args, **kwargs)
    if is_transformed():
        with torch.no_grad():  # torch reports what is wrong with it
            like = func(*args, **kwargs)
        return _elementary(x, shape, weight, bias, given.get("eps", 1e-5)).to(
            like.dtype
        )
    if not _ordinary(x, shape, weight, bias):
        return with_weight(func, given, args, kwargs)
    shape = list(shape)
    weight = x.new_ones(shape) if weight is None else weight
    bias = x.new_zeros(shape) if bias is None else bias
    return _Forward.apply(x, weight, bias, given.get("eps", 1e-5))  # pyright: ignore


def _plain(x: Any, shape: Any, weight: Any, bias: Any) -> bool:
    """Return whether a call has plain tensors only."""
    tensors = [part for part in (x, weight, bias) if part is not None]
    plain = all(type(part) in (Tensor, torch.nn.Parameter) for part in tensors)
    return plain and x is not None and isinstance(shape, tuple | list | torch.Size)


def _ordinary(x: Tensor, shape: Any, weight: Any, bias: Any) -> bool:
    """Return whether a call records a graph of plain tensors that fit together."""
    tensors = [part for part in (x, weight, bias) if part is not None]
    shape = tuple(shape)
    fits = 0 < len(shape) <= x.ndim and tuple(x.shape[-len(shape) :]) == shape
    fits = fits and all(tuple(part.shape) == shape for part in tensors[1:])
    alike = len({(part.dtype, part.device, part.layout) for part in tensors}) == 1
    known = x.dtype in (torch.float32, torch.float64) and x.layout is torch.strided
    recorded = any(part.requires_grad for part in tensors) and x.numel() > 0
    cast = torch.is_autocast_enabled(x.device.type)
    return fits and alike and known and recorded and not cast


def _elementary(x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Tensor:
    out = standardised(x, list(range(-len(shape), 0)), eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@own
class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Any:
        out, mean, scale = torch.native_layer_norm(x, weight.shape, weight, bias, eps)
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, weight, mean, scale = ctx.saved_tensors
        if inside_model_backward():
            return *_by_elements(x, weight, grads[0], ctx.eps), None
        if torch.is_grad_enabled():
            return *_Backward.apply(grads[0], x, weight, mean, scale), None
        # The last pass of a product, which may be batched over many vectors.
        return *_pull_back(grads[0], x, mean, scale, weight), None


@own
class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, scale: Tensor
    ) -> Any:
        cotangents = _pull_back(g, x, mean, scale, weight)
        axes = _axes(weight)
        hat = (x - mean).mul_(scale)
        along = (g * weight).mul_(hat).mean(axes, keepdim=True).mul_(-scale)
        ctx.save_for_backward(g, x, weight, mean, scale, along)
        ctx.ones = torch.ones_like(weight)
        return cotangents

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *cotangents: Tensor
    ) -> Any:
        g, x, weight, mean, scale, along = ctx.saved_tensors
        a, a_weight, a_bias = cotangents
        axes = _axes(weight)
        t, u, across = (
            _pull_back(cotangent, x, mean, scale, by, (True, False, False))[0]
            for cotangent, by in ((a, ctx.ones), (g, weight), (g, a_weight))
        )
        hat = (x - mean).mul_(scale)
        by_u = (a * hat).mean(axes, keepdim=True) * -scale
        by_hat = (a * u).mean(axes, keepdim=True) * -scale
        for_x = torch.addcmul(across, t, along)
        for_x = torch.addcmul(torch.addcmul(for_x, u, by_u), hat, by_hat)
        for_g = torch.addcmul(torch.addcmul(a_bias, hat, a_weight), t, weight)
        return for_g, for_x, _over_samples(g * t, weight), None, None


def _pull_back(
    g: Tensor,
    x: Tensor,
    mean: Tensor,
    scale: Tensor,
    weight: Tensor,
    wanted: Sequence[bool] = (True, True, True),
) -> tuple[Tensor, Tensor, Tensor]:
    """Return r P(γ g), the sum of g x̂ and the sum of g, those that are wanted."""
    # Only the shape of the bias is read.
    return torch.ops.aten.native_layer_norm_backward(
        g, x, weight.shape, mean, scale, weight, weight, list(wanted)
    )


def _by_elements(x: Tensor, weight: Tensor, g: Tensor, eps: float) -> list[Any]:
    """Pull back with a graph, since torch's third derivative is wrong."""

    def normed(x: Tensor, weight: Tensor) -> Tensor:
        return standardised(x, _axes(weight), eps) * weight

    return [*by_elements(normed, [x, weight], g), _over_samples(g, weight)]


def _over_samples(values: Tensor, weight: Tensor) -> Tensor:
    axes = list(range(values.ndim - weight.ndim))
    return values.sum(axes) if axes else values


def _axes(weight: Tensor) -> list[int]:
    return list(range(-weight.ndim, 0))
