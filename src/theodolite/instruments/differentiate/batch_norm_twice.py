r"""Batch and instance norm with a cheap second derivative.

torch's own double backward is right but takes some thirty passes over the activations,
two fifths of a Hessian-vector product of a convolutional net. Here it takes ten. On
given statistics batch norm is affine in each channel (``affine_twice``): torch takes a
dozen passes for it, on a GPU some forty kernels. Instance norm is batch norm of one
sample with a channel for each of the batch; torch gets its third derivatives wrong.

Notation: a channel's $N$ values $x$ have mean $\mu$ and inverse deviation $r$;
$\hat x = r(x - \mu)$; $P(a) = a - \overline{a} - \hat x\,\overline{a \hat x}$.
The gradient of $y = \gamma \hat x + \beta$ pulls $g$ back to $\gamma u$ with
$u = r P(g)$, to $s = \sum g \hat x$ for $\gamma$ and to $\sum g$ for $\beta$. For
cotangents $a, a_\gamma, a_\beta$ of these three, with $t = r P(a)$,

- for $g$: $\gamma t + a_\gamma \hat x + a_\beta$;
- for $\gamma$: $\sum a u$;
- for $x$: $(a_\gamma - \gamma r \overline{a \hat x})\,u - \gamma (s/N)\,r\,t -
  \gamma r\,\overline{a u}\,\hat x$.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from theodolite.core import MeasurementError

from .affine_twice import affine_twice, line
from .elementary_norms import other_axes, standardised, wide, with_weight
from .model_backward import by_elements, inside_model_backward, is_transformed, own

INSTANCE_NORMS: tuple[Callable[..., Any], ...] = (
    functional.instance_norm,
    torch.instance_norm,
)
_RUNNING, _AFFINE = ("running_mean", "running_var"), ("weight", "bias")
_LAST = ("use_input_stats", "momentum", "eps")


def instance_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call instance norm of torch, with correct derivatives of any order.

    With given statistics it is an affine map, whose derivatives torch has. That call,
    and calls with tensor subclasses and the like, go to torch, with a weight.
    """
    given = _instance_arguments(func, args, kwargs)
    if not given["use_input_stats"] or not _instance_graph(given):
        return with_weight(func, given, args, kwargs)
    if any(given.get(name) is not None for name in _RUNNING):
        with torch.no_grad():
            func(*args, **kwargs)  # which updates the running statistics
    x: Tensor = given["input"]
    weight, bias = (
        None if given[name] is None else given[name].repeat(len(x)) for name in _AFFINE
    )
    flat = x.reshape(1, -1, *x.shape[2:])
    return batch_norm_twice(flat, weight, bias, given["eps"]).reshape(x.shape)


def _instance_arguments(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of either form of the call, by name."""
    middle = (*_RUNNING, *_AFFINE)
    if func is torch.instance_norm:
        middle = (*_AFFINE, *_RUNNING)
    names = ("input", *middle, *_LAST, "cudnn_enabled")
    defaults = {"weight": None, "bias": None, "use_input_stats": True, "eps": 1e-5}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _instance_graph(given: Mapping[str, Any]) -> bool:
    """Return whether a call records a graph of plain tensors that fit together."""
    names = ("input", *_AFFINE)
    tensors: list[Any] = [given[n] for n in names if given.get(n) is not None]
    plain = all(type(part) in (Tensor, torch.nn.Parameter) for part in tensors)
    if not plain or given.get("input") is None or not torch.is_grad_enabled():
        return False
    x = tensors[0]
    # torch itself raises for one value per channel.
    fits = x.ndim > 2 and x.numel() > 0 and x.shape[2:].numel() > 1
    fits = fits and all(part.shape == x.shape[1:2] for part in tensors[1:])
    alike = len({(part.dtype, part.device, part.layout) for part in tensors}) == 1
    known = x.dtype in (torch.float32, torch.float64) and x.layout is torch.strided
    recorded = is_transformed() or any(part.requires_grad for part in tensors)
    cast = torch.is_autocast_enabled(x.device.type)
    return fits and alike and known and recorded and not cast


BATCH_NORMS: tuple[Callable[..., Any], ...] = (functional.batch_norm, torch.batch_norm)
# From so many numbers on, an affine map is faster on a CPU; with a tenth of them
# torch was, by a tenth.
_WORTH = 2**15
_TENSORS = ("input", "running_mean", "running_var", "weight", "bias")


def batch_norm_arguments(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of either form of batch norm, by name."""
    head = ("input", "running_mean", "running_var", "weight", "bias")
    if func is torch.batch_norm:
        head = ("input", "weight", "bias", "running_mean", "running_var")
    names = (*head, "training", "momentum", "eps", "cudnn_enabled")
    defaults = {"weight": None, "bias": None, "training": False, "eps": 1e-5}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def batch_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call batch norm of torch; with given statistics, compute it as an affine map.

    Calls with tensor subclasses and the like go to torch, with a weight.
    """
    given = batch_norm_arguments(func, args, kwargs)
    if given["training"] or not _records_graph(given) or not quicker(given["input"]):
        return with_weight(func, given, args, kwargs)
    mean, weight, bias = (given[n] for n in ("running_mean", "weight", "bias"))
    variance = given["running_var"] + given["eps"]
    slope = torch.ones_like(mean) if weight is None else weight
    level = torch.zeros_like(mean) if bias is None else bias
    return affine_twice(given["input"], mean, slope, level, variance)


def quicker(x: Tensor) -> bool:
    """Return whether an affine map is faster here than torch's double backward."""
    if x.device.type != "cpu":
        return x.device.type == "cuda"
    return x.numel() >= _WORTH


def _records_graph(given: Mapping[str, Any]) -> bool:
    """Return whether a call records a graph of plain tensors of one type."""
    tensors: list[Any] = [given[n] for n in _TENSORS if given.get(n) is not None]
    plain = all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)
    if not plain or any(given.get(name) is None for name in _TENSORS[:3]):
        return False
    if is_transformed() or not torch.is_grad_enabled():
        return False
    x, mean, variance = tensors[:3]
    alike = len({(t.dtype, t.device, t.layout) for t in tensors}) == 1
    fits = x.ndim > 1 and all(t.shape == x.shape[1:2] for t in tensors[1:])
    constant = not (mean.requires_grad or variance.requires_grad)
    recorded = any(t.requires_grad for t in tensors) and x.numel() > 0
    known = x.dtype in (torch.float32, torch.float64) and x.layout is torch.strided
    cast = torch.is_autocast_enabled(x.device.type)
    return fits and alike and constant and recorded and known and not cast


def batch_norm_twice(x: Tensor, weight: Any, bias: Any, eps: float) -> Tensor:
    """Normalise by the input's own statistics, as batch norm does in train mode."""
    channels = x.shape[1]
    weight = x.new_ones(channels) if weight is None else weight
    bias = x.new_zeros(channels) if bias is None else bias
    if is_transformed():
        normed = standardised(x, other_axes(x), eps)
        return (normed * wide(weight, x) + wide(bias, x)).to(x.dtype)
    return _Forward.apply(x, weight, bias, eps)  # pyright: ignore[reportReturnType]


@own
class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Any:
        out, mean, scale = torch.native_batch_norm(
            x, weight, bias, None, None, True, 0.0, eps
        )
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, weight, mean, scale = ctx.saved_tensors
        if inside_model_backward():
            return *_by_elements(x, weight, grads[0], ctx.eps), None
        if not torch.is_grad_enabled():
            # The last pass of a product, which may be batched over many vectors.
            return *_pull_back(grads[0], x, mean, scale, ctx.eps, weight), None
        return *_Backward.apply(grads[0], x, weight, mean, scale, ctx.eps), None


@own
class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        g: Tensor,
        x: Tensor,
        weight: Tensor,
        mean: Tensor,
        scale: Tensor,
        eps: float,
    ) -> Any:
        ones = torch.ones_like(mean)
        u, s, total = _pull_back(g, x, mean, scale, eps, ones)
        by = weight * scale / -(x.numel() // x.shape[1])
        # Per-channel values that every product needs.
        kept = (by, by * scale, wide(by * s, x), wide(weight, x))
        ctx.save_for_backward(x, mean, scale, u, *kept)
        ctx.eps, ctx.ones, ctx.zeros = eps, ones, torch.zeros_like(mean)
        return u * kept[-1], s, total

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *cotangents: Tensor
    ) -> Any:
        x, mean, scale, u, by, by_x, wide_s, wide_weight = ctx.saved_tensors
        a, a_weight, a_bias = cotangents
        t, across, _ = _pull_back(a, x, mean, scale, ctx.eps, ctx.ones)
        along = (a * u).sum(other_axes(x))
        # A multiple of x̂ is an affine map through the mean.
        for_g = line(x, mean, a_weight * scale, a_bias, ctx.ones)
        for_g = torch.addcmul(for_g, t, wide_weight)
        for_x = line(x, mean, by_x * along, ctx.zeros, ctx.ones)
        for_x = torch.addcmul(for_x, t, wide_s)
        factor = torch.addcmul(a_weight, by, across)
        for_x = torch.addcmul(for_x, u, wide(factor, x))
        return for_g, for_x, along, None, None, None


def _pull_back(
    g: Tensor, x: Tensor, mean: Tensor, scale: Tensor, eps: float, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return r P(g) times the weight, the sum of g x̂ and the sum of g."""
    return torch.ops.aten.native_batch_norm_backward(
        g, x, weight, None, None, mean, scale, True, eps, [True] * 3
    )


def _by_elements(x: Tensor, weight: Tensor, g: Tensor, eps: float) -> list[Any]:
    """Pull back by elementary operators, with a graph."""
    axes = other_axes(x)

    def normed(x: Tensor, weight: Tensor) -> Tensor:
        return standardised(x, axes, eps) * wide(weight, x)

    return [*by_elements(normed, [x, weight], g), g.sum(axes)]


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


def fits(x: Tensor, weight: Tensor | None) -> bool:
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
    given = call.x, call.weight, call.bias, None, None, True, 0.0, call.eps, False
    return batch_norm(torch.batch_norm, given, {})


def _refuse_fewer(call: NormCall, values: int) -> None:
    if call.x.numel() < values * call.x.shape[1]:
        few = "one" if call.x.numel() else "no"
        raise MeasurementError(
            f"batch norm got an input of shape {tuple(call.x.shape)}, {few} value a "
            "channel, which has no statistics: pass more samples a batch"
        )
