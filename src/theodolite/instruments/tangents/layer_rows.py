r"""Per-sample derivatives by the parameters of known layers.

For a layer that meets its parameters in one product, the derivative of an output by
the parameters is a product of what entered the layer and of the derivative $g$ by what
left it: $g \otimes a$ for a matrix. So $C$ backward passes, to activations only, give
the rows of all samples at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

Layer = nn.Linear | nn.Conv2d | _BatchNorm | nn.GroupNorm | nn.LayerNorm


@dataclass
class Call:
    """One use of a layer: its input, and derivatives (N, C, ...) by its output."""

    module: nn.Module
    inputs: Tensor
    pulled: Tensor


def known(module: nn.Module) -> bool:
    """Return whether this file knows the derivative by a module's parameters."""
    if isinstance(module, nn.Conv2d):
        return module.padding_mode == "zeros" and not isinstance(module.padding, str)
    return isinstance(
        module, nn.Linear | _BatchNorm | nn.GroupNorm | nn.LayerNorm
    ) and not isinstance(module, nn.SyncBatchNorm)


def outer_factors(call: Call, parts: set[str]) -> tuple[Tensor, float, Tensor] | None:
    r"""Return $(A, b, g)$ where rows are single outer products, else None.

    The rows of $A$ are the inputs, if the weight counts; $b$ is 1 where the bias does.
    """
    if not isinstance(call.module, nn.Linear) or call.inputs.ndim != 2:
        return None
    entered = call.inputs if "weight" in parts else call.inputs[:, :0]
    return entered, float("bias" in parts), call.pulled.flatten(0, 1)


def rows_of(call: Call, part: str, *, columns: int) -> Iterator[tuple[slice, Tensor]]:
    """Yield blocks of rows (N · C, k), at most about ``columns`` wide, with places.

    A place is the slice of the parameter, flattened, that a block belongs to.
    """
    module, inputs, pulled = call.module, call.inputs, call.pulled
    if part == "bias":
        rows = _summed(module, pulled)
        yield slice(0, rows.shape[-1]), rows.flatten(0, 1)
    elif isinstance(module, nn.Linear):
        entered = inputs.reshape(len(inputs), -1, inputs.shape[-1])
        left = pulled.reshape(*pulled.shape[:2], -1, pulled.shape[-1]).mT
        yield from _products(left, entered.mT, columns)
    elif isinstance(module, nn.Conv2d):
        yield from _convolution(module, inputs, pulled, columns)
    else:
        rows = _summed(module, pulled * _normalised(module, inputs).unsqueeze(1))
        yield slice(0, rows.shape[-1]), rows.flatten(0, 1)


def _convolution(
    module: nn.Conv2d, inputs: Tensor, pulled: Tensor, columns: int
) -> Iterator[tuple[slice, Tensor]]:
    assert not isinstance(module.padding, str)  # as known() says
    patches = functional.unfold(
        inputs,
        module.kernel_size,
        dilation=module.dilation,
        padding=module.padding,
        stride=module.stride,
    )
    groups = module.groups
    entered = patches.unflatten(1, (groups, -1))
    left = pulled.flatten(3).unflatten(2, (groups, -1))
    per_group = module.weight.numel() // groups
    for group in range(groups):
        for place, rows in _products(left[:, :, group], entered[:, group], columns):
            shift = group * per_group
            yield slice(place.start + shift, place.stop + shift), rows


def _products(
    left: Tensor, entered: Tensor, columns: int
) -> Iterator[tuple[slice, Tensor]]:
    """Sum outer products over places: (N, C, o, L) and (N, i, L) to (N C, o i)."""
    samples, count, height, _ = left.shape
    width = entered.shape[1]
    step = max(1, columns // width)
    for first in range(0, height, step):
        last = min(first + step, height)
        some = left[:, :, first:last].flatten(1, 2)
        rows = torch.bmm(some, entered.mT)
        yield (
            slice(first * width, last * width),
            rows.reshape(samples * count, (last - first) * width),
        )


def _summed(module: nn.Module, pulled: Tensor) -> Tensor:
    """Sum over all axes that share a parameter: (N, C, ...) to (N, C, p)."""
    if isinstance(module, nn.LayerNorm):
        kept = len(module.normalized_shape)
        axes = list(range(2, pulled.ndim - kept))
        return (pulled.sum(axes) if axes else pulled).flatten(2)
    channel = pulled.ndim - 1 if isinstance(module, nn.Linear) else 2
    axes = [axis for axis in range(2, pulled.ndim) if axis != channel]
    return pulled.sum(axes) if axes else pulled


def _normalised(module: nn.Module, inputs: Tensor) -> Tensor:
    """Return the normalised input of a norm layer, before its weight is applied."""
    if isinstance(module, nn.LayerNorm):
        shape = list(module.normalized_shape)
        return functional.layer_norm(inputs, shape, eps=module.eps)
    if isinstance(module, nn.GroupNorm):
        return functional.group_norm(inputs, module.num_groups, eps=module.eps)
    assert isinstance(module, _BatchNorm)
    return functional.batch_norm(
        inputs, module.running_mean, module.running_var, eps=module.eps
    )
