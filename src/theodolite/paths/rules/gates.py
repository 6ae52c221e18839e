"""Rules for activations: piecewise linear calls, and smooth ones that are frozen."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..tape import Scaled, Vectorised
from .call import Call, Frozen, LinearPiece, RuleResult, Slot

# Elementwise activations: frozen as the secant from their value at zero.
_ACTIVATIONS = frozenset(
    """
    gelu silu tanh elu selu celu mish hardswish softplus log_sigmoid erf sin
    softsign expm1 log1p exp tanhshrink arctan atan sinh asinh
    """.split()
)
# Weights and gates, which multiply something else.
_GATES = frozenset("sigmoid _softmax softmax _safe_softmax _log_softmax".split())
# Functions of the input that hand-written norms use.
STATISTICS = frozenset(
    """
    pow square sqrt rsqrt reciprocal var std var_mean std_mean linalg_vector_norm norm
    """.split()
)
_TINY = 1e-150


def activation(call: Call) -> list[RuleResult]:
    """Replace a smooth activation by its secant from zero, exact at this input."""
    if not call.linearise or len(call.live) != 1:
        return [Frozen(call.name, False)]
    (slot,), output = call.live, call.outputs[0]
    operand = call.tensors[slot]
    start = call.function(call.live)(torch.zeros_like(operand))
    away = operand.abs() > _TINY
    factor = torch.where(away, (output - start) / torch.where(away, operand, 1.0), 0.0)
    map = Scaled(shapes=call.shapes(call.live), factor=factor)
    constant = start if bool(start.ne(0).any()) else None
    return [LinearPiece(map=map, slots=(slot,), constant=constant, gated=True)]


def attend(call: Call) -> list[RuleResult]:
    """Freeze attention weights; only values pass through them."""
    slot: Slot = ("value", None)
    if not call.linearise or slot not in call.live:
        return [Frozen("attention", False), *[None] * (len(call.outputs) - 1)]
    weights = _attention(call)
    map = Vectorised(
        shapes=call.shapes((slot,)), function=lambda value: weights @ value
    )
    return [LinearPiece(map=map, slots=(slot,)), *[None] * (len(call.outputs) - 1)]


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
SMOOTH_RULES: dict[str, Callable[[Call], list[RuleResult]]] = {
    **dict.fromkeys(_ACTIVATIONS, activation),
    **dict.fromkeys(_GATES, lambda call: [Frozen(call.name, False)]),
    **dict.fromkeys(
        STATISTICS, lambda call: [Frozen(call.name, True) for _ in call.outputs]
    ),
    **dict.fromkeys(_ATTENTION.split(), attend),
}


# Each of these returns its input, or else a constant.
_SELECTING = frozenset(
    "relu relu6 hardtanh clamp clamp_min clamp_max threshold hardshrink".split()
)
# Piecewise constant, or dependent on shapes only.
STEPS = frozenset(
    """
    sign sgn floor ceil round trunc heaviside gt ge lt le eq ne logical_not isnan
    isfinite isinf argmax argmin argsort floor_divide bucketize
    empty_like zeros_like ones_like full_like rand_like randn_like
    new_empty new_zeros new_ones new_full new_empty_strided
    """.split()
)


def select(call: Call) -> list[RuleResult]:
    """Pass the entries that the call left unchanged; clipped ones are constants."""
    if len(call.live) != 1:
        return [Frozen(call.name, False)]
    (slot,), (output,) = call.live, call.outputs
    operand = call.tensors[slot]
    if call.name == "relu":
        passed = output > 0
        return [_gate(call, slot, passed, None)]
    passed = output == operand
    return [_gate(call, slot, passed, torch.where(passed, 0.0, output))]


def slope(
    factor: Callable[[Call, Tensor], Tensor], *, shifted: bool = False
) -> Callable:
    """Return a rule from the slope at each input, and a constant if ``shifted``."""

    def rule(call: Call) -> list[RuleResult]:
        slot: Slot = ("self", None)
        if call.live != (slot,):
            return [Frozen(call.name, False)]
        operand = call.tensors[slot]
        slopes = factor(call, operand)
        shift = call.outputs[0] - slopes * operand if shifted else None
        return [_gate(call, slot, slopes, shift)]

    return rule


def pool(call: Call) -> list[RuleResult]:
    """Take the element that each window chose."""
    slot: Slot = ("self", None)
    output, chosen = call.outputs[0], call.outputs[1]
    axes = 1 if "1d" in call.name else 3 if "3d" in call.name else 2
    places, shape = chosen.flatten(-axes), output.shape

    def gather(x: Tensor) -> Tensor:
        return x.flatten(-axes).gather(-1, places).reshape(shape)

    return [_mapped(call, slot, gather), None]


def maximum_along(call: Call) -> list[RuleResult]:
    """Take the largest elements along an axis."""
    slot: Slot = ("self", None)
    dim = call.get("dim")
    dim = dim[0] if isinstance(dim, list | tuple) and len(dim) == 1 else dim
    if not isinstance(dim, int) or isinstance(dim, bool):
        return [Frozen(call.name, False)]
    operand, keep = call.tensors[slot], bool(call.get("keepdim"))
    least = call.name in ("min", "amin")
    chosen = (operand.argmin if least else operand.argmax)(dim, keepdim=True)

    def gather(x: Tensor) -> Tensor:
        values = x.gather(dim, chosen)
        return values if keep else values.squeeze(dim)

    return [_mapped(call, slot, gather), *[None] * (len(call.outputs) - 1)]


def compare(call: Call) -> list[RuleResult]:
    """Take, entry by entry, the operand that was larger or smaller."""
    left, right = call.tensors["self", None], call.tensors["other", None]
    first = left >= right if call.name == "maximum" else left <= right
    slots, output = call.live, call.outputs[0]
    names = [name for name, _ in slots]
    if len(slots) == 2:
        return [_mapped(call, slots, lambda a, b: torch.where(first, a, b))]
    passed = first if names == ["self"] else ~first
    map = Vectorised(
        shapes=call.shapes(slots),
        function=lambda x: torch.where(passed, x, torch.zeros_like(x)),
    )
    constant = torch.where(passed, 0.0, output)
    return [LinearPiece(map=map, slots=slots, constant=constant)]


def _gate(call: Call, slot: Slot, factor: Tensor, shift: Tensor | None) -> LinearPiece:
    map = Scaled(shapes=call.shapes((slot,)), factor=factor)
    return LinearPiece(map=map, slots=(slot,), constant=shift)


def _mapped(
    call: Call, slots: Slot | tuple[Slot, ...], function: Callable
) -> LinearPiece:
    chosen = slots if isinstance(slots[0], tuple) else (slots,)
    return LinearPiece(
        map=Vectorised(shapes=call.shapes(chosen), function=function),  # pyright: ignore
        slots=chosen,  # pyright: ignore
    )


def _leaky(call: Call, operand: Tensor) -> Tensor:
    slope = torch.full_like(operand, float(call.get("negative_slope")))
    return slope.masked_fill_(operand > 0, 1.0)


_POOLS = (
    "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d "
    "adaptive_max_pool3d adaptive_max_pool1d max_pool1d_with_indices"
)
RULES: dict[str, Callable[[Call], list[RuleResult]]] = {
    **dict.fromkeys(_SELECTING, select),
    **dict.fromkeys(STEPS, lambda call: [None for _ in call.outputs]),
    **dict.fromkeys(_POOLS.split(), pool),
    **dict.fromkeys(("max", "min", "amax", "amin"), maximum_along),
    **dict.fromkeys(("maximum", "minimum"), compare),
    "abs": slope(lambda _, operand: operand.sign()),
    "leaky_relu": slope(_leaky),
    "_prelu_kernel": slope(
        lambda call, x: torch.where(x > 0, torch.ones_like(x), call.get("weight"))
    ),
    "softshrink": slope(
        lambda call, x: (call.outputs[0] != 0).to(x.dtype), shifted=True
    ),
    "hardsigmoid": slope(lambda _, x: (x.abs() < 3).to(x.dtype) / 6, shifted=True),
}
