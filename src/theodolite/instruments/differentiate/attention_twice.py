r"""Attention with a cheap second derivative, in plain matrix products.

torch's fused kernels have no second derivative, and its plain backend composes it from
those of products and of softmax. Here it takes ten matrix products and six passes over
the weights of all pairs, and keeps two such arrays.

Notation: $P = \mathrm{softmax}(c\,q k^\top + \text{mask})$, $o = P v$. What is pulled
back of $g$ are $P^\top g$ for $v$ and, with $E = g v^\top - \sum_j g_j o_j$ and
$S = P \circ E$, $c\,S k$ for $q$ and $c\,S^\top q$ for $k$. For cotangents
$a_q, a_k, a_v$ of these, with $R = c\,(a_q k^\top + q a_k^\top)$,
$T = P \circ (R - \sum P \circ R)$, $Y = T \circ E + P \circ (g a_v^\top)$ and
$Z = Y - P \sum Y$, sums along rows,

- for $g$: $P a_v + T v$, and for $v$: $T^\top g$;
- for $q$: $c\,(S a_k + Z k)$, and for $k$: $c\,(S^\top a_q + Z^\top q)$.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .model_backward import by_elements, inside_model_backward, is_transformed, own

_NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
_DEFAULTS = {"attn_mask": None, "dropout_p": 0.0, "is_causal": False, "scale": None}

# Pairs on a CPU from which this was 1.1 to 1.4 times as fast as torch's plain
# backend in float32; in float64 it was a tenth slower.
_WORTH = 2**16


def attention(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """Call torch's attention; use plain products where these are faster.

    Dropout, grouped queries, masks that require a gradient and invalid calls are
    left to torch.
    """
    given = {**_DEFAULTS, **dict(zip(_NAMES, args, strict=False)), **kwargs}
    if not _ordinary(given) or not quicker(given["query"], given["key"]):
        return functional.scaled_dot_product_attention(*args, **kwargs)
    q, k, v = (given[name] for name in _NAMES[:3])
    scale = given["scale"]
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    return attention_twice(q, k, v, _bias(given), scale)


def attention_twice(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
) -> Tensor:
    """Return attention; ``bias`` is added to the products."""
    ahead = q.shape[:-2]
    if bias is not None:
        bias = bias.expand(*ahead, *bias.shape[-2:]).reshape(-1, *bias.shape[-2:])
    flat = (part.reshape(-1, *part.shape[-2:]) for part in (q, k, v))
    out: Any = _Forward.apply(*flat, bias, scale)
    return out.reshape(*ahead, *out.shape[-2:])


def quicker(query: Tensor, key: Tensor) -> bool:
    """Return whether this is faster than torch's plain backend."""
    if query.device.type != "cpu":
        return query.device.type == "cuda"
    pairs = query.shape[:-1].numel() * key.shape[-2]
    return query.dtype is torch.float32 and pairs >= _WORTH


def _ordinary(given: dict[str, Any]) -> bool:
    mask = given["attn_mask"]
    parts = [given.get(name) for name in _NAMES[:3]]
    tensors: list[Any] = parts if mask is None else [*parts, mask]
    if not all(type(part) in (Tensor, torch.nn.Parameter) for part in tensors):
        return False
    if is_transformed() or not torch.is_grad_enabled():
        return False
    q, k, v = tensors[:3]
    if torch.is_autocast_enabled(q.device.type) or given.get("enable_gqa"):
        return False
    fits = q.ndim >= 3 and q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
    fits = fits and q.shape[-1] == k.shape[-1] and k.shape[-2] == v.shape[-2]
    alike = q.dtype == k.dtype == v.dtype and q.device == k.device == v.device
    fixed = mask is None or not (given["is_causal"] or mask.requires_grad)
    known = mask is None or mask.dtype in (torch.bool, q.dtype)
    quiet = not given["dropout_p"] and q.is_floating_point()
    filled = all(part.numel() > 0 for part in (q, k, v))
    ordinary = fits and alike and fixed and known and quiet and filled
    return ordinary and _spreads(mask, q, k)


def _spreads(mask: Tensor | None, q: Tensor, k: Tensor) -> bool:
    """Return whether a mask has one number per pair, or one for several."""
    if mask is None:
        return True
    whole = (*q.shape[:-1], k.shape[-2])
    pairs = zip(reversed(mask.shape), reversed(whole), strict=False)
    return mask.ndim <= q.ndim and all(own in (1, wanted) for own, wanted in pairs)


def _bias(given: dict[str, Any]) -> Tensor | None:
    """Return the bias that is added to the products, −∞ where masked."""
    q, k, mask = given["query"], given["key"], given["attn_mask"]
    if given["is_causal"]:
        shape = (q.shape[-2], k.shape[-2])
        mask = torch.ones(shape, dtype=torch.bool, device=q.device).tril()
    if mask is None:
        return None
    mask = torch.atleast_2d(mask)
    if mask.dtype is torch.bool:
        zeros = torch.zeros(mask.shape, dtype=q.dtype, device=q.device)
        mask = zeros.masked_fill(~mask, -torch.inf)
    return mask


def _weights(q: Tensor, k: Tensor, bias: Tensor | None, scale: float) -> Tensor:
    """Return the attention weights of each row; zeros where all is masked."""
    products = (q * scale) @ k.mT
    if bias is None:
        return torch.softmax(products, -1)
    return torch.ops.aten._safe_softmax(products + bias, -1)


def _excess(g: Tensor, v: Tensor, out: Tensor) -> Tensor:
    return g @ v.mT - (g * out).sum(-1, keepdim=True)


def _pulled(
    g: Tensor, q: Tensor, k: Tensor, p: Tensor, e: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    s = p * e
    return (s @ k) * scale, s.mT @ (q * scale), p.mT @ g


@own
class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float
    ) -> Any:
        p = _weights(q, k, bias, scale)
        out = p @ v
        ctx.save_for_backward(q, k, v, bias, p, out)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        q, k, v, bias, p, out = ctx.saved_tensors
        if inside_model_backward():

            def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                return _weights(q, k, bias, ctx.scale) @ v

            return *by_elements(attended, [q, k, v], grads[0]), None, None
        if torch.is_grad_enabled():
            gradients = _Backward.apply(
                grads[0], q, k, v, bias, p, out.detach(), ctx.scale
            )
        else:
            e = _excess(grads[0], v, out)
            gradients = _pulled(grads[0], q, k, p, e, ctx.scale)
        return *gradients, None, None


@own
class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        g: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor | None,
        p: Tensor,
        out: Tensor,
        scale: float,
    ) -> Any:
        e = _excess(g, v, out)
        ctx.save_for_backward(g, q, k, v, bias, p, e)
        ctx.scale = scale
        return _pulled(g, q, k, p, e, scale)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        g, q, k, v, bias, p, e = ctx.saved_tensors
        a_q, a_k, a_v = cotangents
        scale = ctx.scale
        if torch.is_grad_enabled():  # for a third derivative: as functions of all three
            p = _weights(q, k, bias, scale)
            e = _excess(g, v, p @ v)
        a_q, a_k, s = a_q * scale, a_k * scale, p * e
        r = torch.cat([a_q, q], -1) @ torch.cat([k, a_k], -1).mT
        t = torch.ops.aten._softmax_backward_data(r, p, -1, p.dtype)
        y = torch.addcmul(t * e, p, g @ a_v.mT)
        z = torch.addcmul(y, p, y.sum(-1, keepdim=True), value=-1)
        for_g = torch.baddbmm(p @ a_v, t, v)
        for_q = torch.baddbmm(s @ a_k, z, k, alpha=scale)
        for_k = torch.baddbmm(s.mT @ a_q, z.mT, q, alpha=scale)
        return for_g, for_q, for_k, t.mT @ g, None, None, None, None
