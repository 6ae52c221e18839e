r"""Convolutions whose second derivative uses standard kernels.

torch's own double backward is right, but computes the change of the weight's gradient
as a transposed, dilated convolution, for which libraries have no fast kernel: one
Hessian product of a deep network costs four or five gradients on a CUDA device, where
two are the limit. A convolution $y = x * w + b$ is bilinear, and so are its pull-backs
$g_x = B_x(g, w)$, $g_w = B_w(g, x)$, $g_b = \sum g$. For cotangents $a_x, a_w, a_b$ of
these three,

- for $g$: $a_x * w + a_b + x * a_w$, two convolutions forwards;
- for $x$: $B_x(g, a_w)$ and for $w$: $B_w(g, a_x)$, the two halves of one backward
  convolution of $g$ at the input $a_x$ and the weight $a_w$.

These are convolutions again, so that derivatives of any order are right.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from operator import index
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .convolution_by_samples import Sliding, convolved, pulled_back
from .elementary_norms import other_axes, wide
from .model_backward import by_elements, inside_model_backward, is_transformed, own

_NAMES = ("input", "weight", "bias", "stride", "padding")
_FORWARDS = (*_NAMES, "dilation", "groups")
_TRANSPOSED = (*_NAMES, "output_padding", "groups", "dilation")
_GENERAL = (*_NAMES, "dilation", "transposed", "output_padding", "groups")
_BY_ONE = ("stride", "dilation")
# The operators that are replaced: number of axes that they slide along, and names of
# their arguments in order.
CONVOLUTIONS: dict[Any, tuple[int | None, tuple[str, ...]]] = {
    torch.conv1d: (1, _FORWARDS),
    torch.conv2d: (2, _FORWARDS),
    torch.conv3d: (3, _FORWARDS),
    torch.conv_transpose1d: (1, _TRANSPOSED),
    torch.conv_transpose2d: (2, _TRANSPOSED),
    torch.conv_transpose3d: (3, _TRANSPOSED),
    torch.convolution: (None, _GENERAL),
}
# Products on a CPU from which ours is faster in float64, by a tenth to a half on one
# and two axes; in float32 oneDNN's double backward is as fast or faster.
_WORTH = 2**17


def convolution(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call a convolution of torch; use standard kernels where these are faster.

    All other calls, also invalid ones, go to torch unchanged: those with tensor
    subclasses, for instance.
    """
    axes, names = CONVOLUTIONS[func]
    given = {"bias": None, **dict(zip(names, args, strict=False)), **kwargs}
    given.setdefault("transposed", names is _TRANSPOSED)
    if not _ordinary(given, axes):
        return func(*args, **kwargs)
    axes = given["weight"].ndim - 2
    x, how = _padded(given["input"], given, axes)
    if how is None or not quicker(x, given["weight"], how):
        return func(*args, **kwargs)
    single = x.ndim == axes + 1
    out = convolution_twice(
        x.unsqueeze(0) if single else x, given["weight"], given["bias"], how
    )
    return out.squeeze(0) if single else out


def convolution_twice(
    x: Tensor, weight: Tensor, bias: Tensor | None, how: Sliding
) -> Tensor:
    """Convolve a batch; derivatives of any order use standard kernels."""
    if torch.is_autocast_enabled(x.device.type):
        kind = torch.get_autocast_dtype(x.device.type)
        parts = (x, weight, bias)
        x, weight, bias = (
            p if p is None or p.dtype is torch.float64 else p.to(kind) for p in parts
        )  # pyright: ignore[reportAssignmentType]
    return _convolve(x, weight, bias, how)


def quicker(x: Tensor, weight: Tensor, how: Sliding) -> bool:
    """Return whether standard kernels are faster here than torch's double backward."""
    if x.device.type != "cpu":
        return x.device.type == "cuda"
    places = x.numel() // max(1, x.shape[1 - (x.ndim == weight.ndim - 1)])
    if not how.transposed:
        places //= max(1, prod(how.stride))
    wide = weight.ndim <= 4 and places * weight.numel() >= _WORTH
    return wide and x.dtype is torch.float64


def _ordinary(given: dict[str, Any], axes: int | None) -> bool:
    """Return whether a call has plain tensors that fit together."""
    wanted = ("input", "weight", "bias")
    tensors: list[Any] = [given[n] for n in wanted if given.get(n) is not None]
    plain = all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)
    if not plain or given.get("input") is None or given.get("weight") is None:
        return False
    if is_transformed():
        return False
    x, weight = tensors[:2]
    fits = axes is None or weight.ndim == axes + 2
    fits = fits and weight.ndim > 2 and x.ndim in (weight.ndim - 1, weight.ndim)
    alike = len({(t.dtype, t.device, t.layout) for t in tensors}) == 1
    plain = x.is_floating_point() and x.layout is torch.strided
    return fits and plain and alike


def _padded(
    x: Tensor, given: dict[str, Any], axes: int
) -> tuple[Tensor, Sliding | None]:
    """Return the input and its sliding settings, with named padding made explicit."""
    padding = given.get("padding", 0)
    named = isinstance(padding, str)
    try:
        stride, dilation = (_wide(given.get(n, 1), axes) for n in _BY_ONE)
        extra = _wide(given.get("output_padding", 0), axes)
        laid = _wide(0 if named else padding, axes)
        groups = index(given.get("groups", 1))
    except TypeError:
        return x, None  # torch reports what is wrong with it
    if named and padding != "valid":
        if padding != "same" or stride != [1] * axes:
            return x, None
        kernel = given["weight"].shape[2:]
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        # The odd one goes to the far side.
        far = [side for t in reversed(total) for side in (0, t % 2)]
        x = functional.pad(x, far) if any(far) else x
        laid = [t // 2 for t in total]
    how = Sliding(stride, laid, dilation, bool(given["transposed"]), extra, groups)
    return x, how


def _wide(value: Any, axes: int) -> list[int]:
    """Return one integer per axis, from any accepted type."""
    if not isinstance(value, tuple | list):
        return [index(value)] * axes
    if len(value) not in (1, axes):
        raise TypeError(f"{len(value)} numbers, and {axes} axes")
    values = [index(entry) for entry in value]
    return values * axes if len(values) == 1 else values


def _convolve(x: Tensor, weight: Tensor, bias: Tensor | None, how: Sliding) -> Tensor:
    if torch.is_grad_enabled():  # what needs no graph gets none
        parts = (_behind(part) for part in (x, weight, bias))
        return _Forward.apply(*parts, how)  # pyright: ignore[reportReturnType]
    return convolved(x, weight, bias, how)


def _plain(how: Sliding, x: Tensor, weight: Tensor) -> Tensor:
    return torch.convolution(x, weight, None, *how)


def _pull_back(
    g: Tensor, x: Tensor, weight: Tensor, how: Sliding, wanted: Sequence[bool]
) -> Sequence[Tensor | None]:
    """Return the wanted cotangents of input, weight and bias."""
    if torch.is_grad_enabled():
        parts = (_behind(part) for part in (g, x, weight))
        pulled: Any = _Backward.apply(*parts, how, wanted)
        return pulled
    return pulled_back(g, x, weight, how, wanted)


def _behind(part: Tensor | None) -> Tensor | None:
    """Insert a step before a leaf, since torch cannot say whether a leaf is needed."""
    if part is None or not part.requires_grad or not part.is_leaf:
        return part
    return part.view_as(part)


def _will_be_used(ctx: Any, count: int) -> list[bool]:
    """Return which input tensors need a cotangent in this pass."""
    used = [
        node is not None and torch._C._will_engine_execute_node(node)
        for node, _ in ctx.next_functions
    ]
    return used + [False] * (count - len(used))


@own
class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, how: Sliding
    ) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, weight)
        ctx.how, ctx.biased = how, bias is not None
        return convolved(x, weight, bias, how)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if grads[0] is None:
            return (None,) * 4
        x, weight = ctx.saved_tensors
        if inside_model_backward():
            pulled = by_elements(partial(_plain, ctx.how), [x, weight], grads[0])
            total = grads[0].sum(other_axes(x)) if ctx.biased else None
            return *pulled, total, None
        wanted = _will_be_used(ctx, 3)
        return *_pull_back(grads[0], x, weight, ctx.how, wanted), None


@own
class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        g: Tensor,
        x: Tensor,
        weight: Tensor,
        how: Sliding,
        wanted: Sequence[bool],
    ) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(g, x, weight)
        ctx.how = how
        return tuple(pulled_back(g, x, weight, how, wanted))

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        g, x, weight = ctx.saved_tensors
        a_x, a_weight, a_bias = cotangents
        for_g, for_x, for_weight = _will_be_used(ctx, 3)
        along = None
        if for_g and a_x is not None:
            along = _convolve(a_x, weight, a_bias, ctx.how)
        if for_g and a_weight is not None:
            across = _convolve(x, a_weight, a_bias if along is None else None, ctx.how)
            along = across if along is None else along + across
        if for_g and along is None and a_bias is not None:
            along = wide(a_bias, g).expand_as(g)
        wanted = [for_x and a_weight is not None, for_weight and a_x is not None, False]
        pulled: Sequence[Tensor | None] = (None, None)
        if any(wanted):
            at = x if a_x is None else a_x
            by = weight if a_weight is None else a_weight
            pulled = _pull_back(g, at, by, ctx.how, wanted)
        return along, pulled[0], pulled[1], None, None
