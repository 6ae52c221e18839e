"""Calls that are not piecewise linear: what may be frozen of them, and how."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from theodolite.paths.maps import Scaled, Vectorised
from theodolite.paths.rules.call import Call, Frozen, Piece, Slot, Verdict

# Elementwise activations: frozen as the secant from their value at zero.
_ACTIVATIONS = frozenset(
    """
    gelu silu tanh elu selu celu mish hardswish softplus log_sigmoid erf sin
    softsign expm1 log1p exp tanhshrink arctan atan sinh asinh
    """.split()
)
# Weights and gates, which multiply something else.
_GATES = frozenset("sigmoid _softmax softmax _safe_softmax _log_softmax".split())
# What norms written by hand take of their input.
STATISTICS = frozenset(
    """
    pow square sqrt rsqrt reciprocal var std var_mean std_mean linalg_vector_norm norm
    """.split()
)
_TINY = 1e-150


def activation(call: Call) -> list[Verdict]:
    """Freeze the slope of the secant, which is exact at the activation that came."""
    if not call.linearise or len(call.live) != 1:
        return [Frozen(call.name, False)]
    (slot,), output = call.live, call.outputs[0]
    operand = call.tensors[slot]
    start = call.function(call.live)(torch.zeros_like(operand))
    away = operand.abs() > _TINY
    factor = torch.where(away, (output - start) / torch.where(away, operand, 1.0), 0.0)
    map = Scaled(shapes=call.shapes(call.live), factor=factor)
    constant = start if bool(start.ne(0).any()) else None
    return [Piece(map=map, slots=(slot,), constant=constant, gated=True)]


def gate(call: Call) -> list[Verdict]:
    """Hold the value of a gate."""
    return [Frozen(call.name, False)]


def statistic(call: Call) -> list[Verdict]:
    """Hold the value of what may be a statistic."""
    return [Frozen(call.name, True) for _ in call.outputs]


def attend(call: Call) -> list[Verdict]:
    """Freeze the weights of attention; values pass through them."""
    slot: Slot = ("value", None)
    if not call.linearise or slot not in call.live:
        return [Frozen("attention", False), *[None] * (len(call.outputs) - 1)]
    weights = _attention(call)
    map = Vectorised(
        shapes=call.shapes((slot,)), function=lambda value: weights @ value
    )
    return [Piece(map=map, slots=(slot,)), *[None] * (len(call.outputs) - 1)]


def _attention(call: Call) -> Tensor:
    query, key = call.tensors["query", None], call.tensors["key", None]
    scale = call.get("scale")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale
    if call.get("is_causal"):
        size = scores.shape[-2:]
        future = torch.ones(size, dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    mask = call.get("attn_mask", call.get("attn_bias"))
    if isinstance(mask, Tensor):
        off = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -math.inf) if off else scores + mask
    return scores.softmax(-1)


_ATTENTION = (
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_fused_attention_overrideable"
)
RULES: dict[str, Callable[[Call], list[Verdict]]] = {
    **dict.fromkeys(_ACTIVATIONS, activation),
    **dict.fromkeys(_GATES, gate),
    **dict.fromkeys(STATISTICS, statistic),
    **dict.fromkeys(_ATTENTION.split(), attend),
}
