"""Normalisation as an affine map, its statistics those of the true pass."""

from collections.abc import Callable

import torch
from torch import Tensor

from theodolite.paths.maps import Scaled
from theodolite.paths.rules.call import Call, Piece, Slot, Verdict

_SLOT: Slot = ("input", None)


def batch_norm(call: Call) -> list[Verdict]:
    """Use running statistics, or those of the batch that came."""
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


def layer_norm(call: Call) -> list[Verdict]:
    """Use the statistics of each sample that came."""
    _, mean, rate = call.outputs
    return _affine(call, mean, rate, call.get("weight"), call.get("bias"))


def group_norm(call: Call) -> list[Verdict]:
    """Use the statistics of each sample's groups that came."""
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


def rms_norm(call: Call) -> list[Verdict]:
    """Use the root mean square of each sample that came."""
    operand = call.tensors[_SLOT]
    axes = tuple(range(-len(call.get("normalized_shape")), 0))
    eps = call.get("eps")
    eps = torch.finfo(operand.dtype).eps if eps is None else eps
    rate = (operand.square().mean(axes, keepdim=True) + eps).rsqrt()
    return _affine(call, torch.zeros_like(rate), rate, call.get("weight"), None)


def _affine(
    call: Call, mean: Tensor, rate: Tensor, weight: Tensor | None, bias: Tensor | None
) -> list[Verdict]:
    factor = rate if weight is None else rate * weight
    shift = -mean * factor
    shift = shift if bias is None else shift + bias
    map = Scaled(shapes=call.shapes((_SLOT,)), factor=factor)
    found = Piece(map=map, slots=(_SLOT,), constant=shift)
    return [found, *[None] * (len(call.outputs) - 1)]


def _shaped(given: Tensor | None, shape: list[int]) -> Tensor | None:
    return None if given is None else given.reshape(shape)


_BATCH = (
    "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training "
    "_native_batch_norm_legit_functional cudnn_batch_norm miopen_batch_norm "
    "_batch_norm_with_update batch_norm_with_update _batch_norm_no_update"
)
RULES: dict[str, Callable[[Call], list[Verdict]]] = {
    **dict.fromkeys(_BATCH.split(), batch_norm),
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "_fused_rms_norm": rms_norm,
}
