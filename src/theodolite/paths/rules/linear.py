"""Calls that are linear in the tracked tensors, up to constants.

A norm is one of them: an affine map with the statistics of the true pass.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ..tape import Convolved, Scaled, Summed, Vectorised
from .call import Call, Frozen, LinearPiece, RuleResult, Slot

_SLOT: Slot = ("input", None)


def batch_norm(call: Call) -> list[RuleResult]:
    """Normalise by running statistics, or by those of this batch."""
    operand = call.tensors[_SLOT]
    axes = [axis for axis in range(operand.ndim) if axis != 1]
    training = call.get("training", "no_training" not in call.name)
    if training or call.get("running_mean") is None:
        mean, variance = operand.mean(axes), operand.var(axes, correction=0)
    else:
        mean, variance = call.get("running_mean"), call.get("running_var")
    eps = call.get("eps", call.get("epsilon"))
    shape = [-1 if axis == 1 else 1 for axis in range(operand.ndim)]
    mean, rate = mean.reshape(shape), (variance + eps).rsqrt().reshape(shape)
    weight, bias = (_shaped(call.get(name), shape) for name in ("weight", "bias"))
    return _affine(call, mean, rate, weight, bias)


def layer_norm(call: Call) -> list[RuleResult]:
    """Normalise by the statistics of each sample."""
    _, mean, rate = call.outputs
    return _affine(call, mean, rate, call.get("weight"), call.get("bias"))


def group_norm(call: Call) -> list[RuleResult]:
    """Normalise by the statistics of the groups of each sample."""
    operand = call.tensors[_SLOT]
    _, mean, rate = call.outputs
    channels, groups = operand.shape[1], int(call.get("group"))
    tail = (1,) * (operand.ndim - 2)

    def spread(statistic: Tensor) -> Tensor:
        by_group = statistic.reshape(len(operand), groups, 1)
        wide = by_group.expand(-1, -1, channels // groups)
        return wide.reshape(len(operand), channels, *tail)

    weight, bias = (
        _shaped(call.get(name), [1, -1, *tail]) for name in ("weight", "bias")
    )
    return _affine(call, spread(mean), spread(rate), weight, bias)


def rms_norm(call: Call) -> list[RuleResult]:
    """Normalise by the root mean square of each sample."""
    operand = call.tensors[_SLOT]
    axes = tuple(range(-len(call.get("normalized_shape")), 0))
    eps = call.get("eps")
    eps = torch.finfo(operand.dtype).eps if eps is None else eps
    rate = (operand.square().mean(axes, keepdim=True) + eps).rsqrt()
    return _affine(call, torch.zeros_like(rate), rate, call.get("weight"), None)


def _affine(
    call: Call, mean: Tensor, rate: Tensor, weight: Tensor | None, bias: Tensor | None
) -> list[RuleResult]:
    factor = rate if weight is None else rate * weight
    shift = -mean * factor
    shift = shift if bias is None else shift + bias
    map = Scaled(shapes=call.shapes((_SLOT,)), factor=factor)
    piece = LinearPiece(map=map, slots=(_SLOT,), constant=shift)
    return [piece, *[None] * (len(call.outputs) - 1)]


def _shaped(given: Tensor | None, shape: list[int]) -> Tensor | None:
    return None if given is None else given.reshape(shape)


_BATCH = (
    "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training "
    "_native_batch_norm_legit_functional cudnn_batch_norm miopen_batch_norm "
    "_batch_norm_with_update batch_norm_with_update _batch_norm_no_update"
)
NORM_RULES: dict[str, Callable[[Call], list[RuleResult]]] = {
    **dict.fromkeys(_BATCH.split(), batch_norm),
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "_fused_rms_norm": rms_norm,
}


# Linear in their one tracked operand, for all values of the other arguments.
PLAIN = frozenset(
    """
    clone contiguous _to_copy to
    view _unsafe_view reshape _reshape_alias unflatten flatten squeeze unsqueeze
    permute transpose t numpy_T movedim expand expand_as repeat flip roll tile
    slice select narrow diagonal index index_select gather take_along_dim unfold
    split split_with_sizes unsafe_split unsafe_split_with_sizes chunk unbind
    tril triu neg mean sum cumsum trace avg_pool1d avg_pool2d avg_pool3d
    _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
    upsample_nearest1d upsample_nearest2d _upsample_nearest_exact2d
    upsample_bilinear2d upsample_bicubic2d upsample_linear1d
    pixel_shuffle pixel_unshuffle im2col col2im nan_to_num
    """.split()
)
# Linear in all tensors of real numbers together, of which some may be constants.
JOINT = frozenset("cat stack where masked_fill constant_pad_nd slice_scatter".split())
# Linear in either factor while the other is constant; some have an added term.
PRODUCTS = {
    "mul": ("self", "other", None),
    "mm": ("self", "mat2", None),
    "bmm": ("self", "mat2", None),
    "mv": ("self", "vec", None),
    "dot": ("self", "tensor", None),
    "matmul": ("self", "other", None),
    "addcmul": ("tensor1", "tensor2", "self"),
    "addmm": ("mat1", "mat2", "self"),
    "addmv": ("mat", "vec", "self"),
    "baddbmm": ("batch1", "batch2", "self"),
    "linear": ("input", "weight", "bias"),
}
_RESHAPED = {"view": torch.ops.aten.reshape.default}
_RESHAPED["_unsafe_view"] = _RESHAPED["_reshape_alias"] = _RESHAPED["view"]


def plain(call: Call) -> list[RuleResult]:
    """Apply a call that is linear in its only tracked operand to each degree."""
    if len(call.live) != 1:
        return [Frozen(call.name, False)]
    other = None
    if "memory_format" in call.arguments:  # does not affect a stack's values
        call.arguments["memory_format"] = None
    if call.name in _RESHAPED:  # a stack may not be laid out as the tensor was
        other = _RESHAPED[call.name]
        call.arguments["shape"] = call.arguments.pop("size", call.get("shape"))
    return [
        LinearPiece(
            map=Vectorised(
                shapes=call.shapes(call.live),
                function=call.function(call.live, place=place, func=other),
            ),
            slots=call.live,
        )
        if isinstance(output, Tensor) and output.is_floating_point()
        else None
        for place, output in enumerate(call.outputs)
    ]


def restride(call: Call) -> list[RuleResult]:
    """Pick the entries that another view of the same memory shows."""
    slot: Slot = ("self", None)
    operand, output = call.tensors[slot], call.outputs[0]
    length = operand.untyped_storage().nbytes() // operand.element_size()
    memory = torch.full((length,), -1, dtype=torch.int64, device=operand.device)
    numbers = torch.arange(operand.numel(), device=operand.device)
    place = operand.shape, operand.stride(), operand.storage_offset()
    memory.as_strided(*place).copy_(numbers.reshape(operand.shape))
    place = output.shape, output.stride(), output.storage_offset()
    chosen = memory.as_strided(*place).clone()
    if bool(chosen.lt(0).any()):
        return [Frozen(call.name, False)]
    map = Vectorised(
        shapes=call.shapes((slot,)), function=lambda x: x.reshape(-1)[chosen]
    )
    return [LinearPiece(map=map, slots=(slot,))]


def same(call: Call) -> list[RuleResult]:
    """Keep the mark of a tensor that is returned unchanged."""
    return [None]


def joint(call: Call) -> list[RuleResult]:
    """Split a call into a part linear in tracked operands, and a constant."""
    blank = {slot: torch.zeros_like(call.tensors[slot]) for slot in call.floats()}
    numbers = {(n, None): 0.0 for n in ("value", "other") if _is_number(call.get(n))}
    function = call.function(call.live, fixed={**blank, **numbers})
    constant = None
    if blank or numbers:
        off = [torch.zeros_like(call.tensors[slot]) for slot in call.live]
        constant = call.function(call.live)(*off)
    map = Vectorised(shapes=call.shapes(call.live), function=function)
    return [LinearPiece(map=map, slots=call.live, constant=constant)]


def add(call: Call) -> list[RuleResult]:
    """Add tracked operands, numbers and constants."""
    sign = -1.0 if call.name in ("sub", "rsub") else 1.0
    factor = sign * float(call.get("alpha"))
    weights = {"self": 1.0, "other": factor}
    if call.name == "rsub":
        weights = {"self": factor, "other": 1.0}
    slots = tuple(
        slot for slot in (("self", None), ("other", None)) if slot in call.live
    )
    (output,) = call.outputs
    constant, dtype, device = None, output.dtype, output.device
    for name, weight in weights.items():
        if (name, None) not in slots:
            value = call.get(name)
            constant = torch.as_tensor(value, dtype=dtype, device=device) * weight
    map = Summed(
        shapes=call.shapes(slots),
        weights=tuple(weights[name] for name, _ in slots),
        shape=output.shape,
    )
    return [LinearPiece(map=map, slots=slots, constant=constant)]


def copy(call: Call) -> list[RuleResult]:
    """Take over the values of a tracked tensor, broadcast."""
    if not call.is_live("src"):
        return [None]
    slot: Slot = ("src", None)
    shape = call.outputs[0].shape
    return [
        LinearPiece(
            map=Summed(shapes=call.shapes((slot,)), weights=(1.0,), shape=shape),
            slots=(slot,),
        )
    ]


def product(call: Call) -> list[RuleResult]:
    """Multiply by a constant; of two tracked factors, freeze the gate."""
    left, right, addend = PRODUCTS[call.name]
    factors = tuple(s for s in ((left, None), (right, None)) if s in call.live)
    if len(factors) == 2:
        factors = _freeze_one(call, factors)
        if isinstance(factors, Frozen):
            return [factors]
    if not factors:
        return [Frozen(call.name, False)]
    if call.name == "mul":
        return [_scaled(call, factors[0])]
    return [_bilinear(call, factors, addend)]


def divide(call: Call) -> list[RuleResult]:
    """Divide by a constant."""
    if call.is_live("other") or call.get("rounding_mode") is not None:
        return [Frozen("div", not call.is_live("self") or call.linearise)]
    other = call.get("other")
    slot: Slot = ("self", None)
    inverse = 1.0 / other if _is_number(other) else other.reciprocal()
    if _keeps_shape(inverse, call.tensors[slot].shape, call.outputs[0].shape):
        map = Scaled(shapes=call.shapes((slot,)), factor=inverse)
    else:
        map = Vectorised(
            shapes=call.shapes((slot,)), function=lambda x: torch.mul(x, inverse)
        )
    return [LinearPiece(map=map, slots=(slot,))]


def convolve(call: Call) -> list[RuleResult]:
    """Convolve with constant filters."""
    if call.live != (("input", None),):
        return [Frozen("a convolution with filters that depend on the input", False)]
    names = "stride padding dilation transposed output_padding groups".split()
    bias, input_ = call.get("bias"), call.tensors["input", None]
    if bias is not None:
        bias = bias.reshape(1, -1, *(1,) * (input_.ndim - 2))
    map = Convolved(
        shapes=(input_.shape,),
        weight=call.get("weight"),
        settings=tuple(call.get(name) for name in names),
    )
    return [LinearPiece(map=map, slots=call.live, constant=bias)]


def _scaled(call: Call, slot: Slot) -> LinearPiece:
    (other,) = {"self", "other"} - {slot[0]}
    factor = call.get(other)
    shapes = call.shapes((slot,))
    gated = any(s != slot for s in call.gated)
    if _keeps_shape(factor, shapes[0], call.outputs[0].shape):
        map = Scaled(shapes=shapes, factor=factor)
    else:
        map = Vectorised(shapes=shapes, function=lambda x: torch.mul(x, factor))
    return LinearPiece(map=map, slots=(slot,), gated=gated)


def _bilinear(call: Call, factors: tuple[Slot, ...], addend: str | None) -> LinearPiece:
    """Return a matrix product with one constant factor, and its added term."""
    slots, constant = factors, None
    fixed: dict[Slot, Tensor | None] = {}
    if addend is not None and isinstance(call.get(addend), Tensor):
        if call.is_live(addend):
            slots = (*factors, (addend, None))
        else:
            constant = call.get(addend) * call.get("beta", 1)
            blank = torch.zeros_like(call.get(addend))
            fixed = {(addend, None): None if call.name == "linear" else blank}
    map = Vectorised(
        shapes=call.shapes(slots), function=call.function(slots, fixed=fixed)
    )
    return LinearPiece(map=map, slots=slots, constant=constant)


def _freeze_one(call: Call, factors: tuple[Slot, ...]) -> tuple[Slot, ...] | Frozen:
    """Return the factor to follow, if one of two tracked factors may be frozen."""
    left, right = (call.tensors[slot] for slot in factors)
    if call.name == "mul" and left is right:
        return Frozen("a square", True)
    if not call.linearise:
        return Frozen("a product of two activations", False)
    gates = [slot for slot in factors if slot in call.gated]
    small = 0 if left.numel() < right.numel() else 1
    frozen = gates[0] if len(gates) == 1 else factors[small]
    return tuple(slot for slot in factors if slot != frozen)


def _keeps_shape(
    factor: Tensor | float, shape: torch.Size, product: torch.Size
) -> bool:
    if _is_number(factor):
        return True
    assert isinstance(factor, Tensor)
    return product == shape and factor.ndim <= len(shape)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Rule = Callable[[Call], list[RuleResult]]
RULES: dict[str, Rule] = {
    **dict.fromkeys(PLAIN, plain),
    **dict.fromkeys(JOINT, joint),
    **dict.fromkeys(PRODUCTS, product),
    **dict.fromkeys(("add", "sub", "rsub"), add),
    **dict.fromkeys(("alias", "detach", "lift_fresh"), same),
    "as_strided": restride,
    "copy": copy,
    "div": divide,
    "convolution": convolve,
}
