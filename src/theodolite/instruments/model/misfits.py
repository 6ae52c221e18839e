"""Why a model refuses its inputs, or a loss its targets, and what to pass."""

import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_TORCH = Path(torch.__file__).parent
OF_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss)
BY_ELEMENTS = (
    nn.MSELoss,
    nn.L1Loss,
    nn.SmoothL1Loss,
    nn.HuberLoss,
    nn.BCELoss,
    nn.BCEWithLogitsLoss,
)


def raised_by_torch(error: BaseException) -> bool:
    """Return whether torch raised the error, and not the code of a user's loss."""
    if isinstance(error, RuntimeError):  # errors of operators, wherever they are called
        return True
    frames = list(traceback.walk_tb(error.__traceback__))
    return _TORCH in Path(frames[-1][0].f_code.co_filename).parents


def target_misfit(loss: nn.Module, outputs: Tensor, targets: Tensor) -> str:
    """Return what is wrong with the targets, or nothing if that is unknown."""
    if outputs.ndim and targets.ndim and len(outputs) != len(targets):
        return (
            f"{len(outputs)} outputs and {len(targets)} targets came: pass one target "
            "a sample"
        )
    if isinstance(loss, OF_CLASSES):
        return _misfit_of_classes(loss, outputs, targets)
    name = type(loss).__name__
    if isinstance(loss, BY_ELEMENTS) and outputs.shape != targets.shape:
        alike = outputs.numel() == targets.numel()
        such = "targets.reshape(outputs.shape)" if alike else "one-hot targets"
        return (
            f"outputs of shape {tuple(outputs.shape)} and targets of shape "
            f"{tuple(targets.shape)}: {name} wants equal shapes, such as {such}"
        )
    if not targets.is_floating_point():
        return (
            f"the targets are {_kind(targets)} and {name} wants numbers such as the "
            f"outputs: pass targets.to({outputs.dtype})"
        )
    return ""


def _misfit_of_classes(loss: Any, outputs: Tensor, targets: Tensor) -> str:
    name, classes = type(loss).__name__, outputs.shape[min(1, outputs.ndim - 1)]
    whole = not targets.is_floating_point()
    if outputs.shape == targets.shape and outputs.ndim > 1:
        if isinstance(loss, nn.CrossEntropyLoss) and not whole:
            return ""
        also = f", or probabilities, targets.to({outputs.dtype})" if whole else ""
        return (
            f"the targets of shape {tuple(targets.shape)} look one-hot, and {name} "
            f"wants numbers of classes: pass targets.argmax(1){also}"
        )
    if targets.ndim == outputs.ndim and targets.ndim > 1 and targets.shape[1] == 1:
        return (
            f"the targets have shape {tuple(targets.shape)}, and {name} wants a number "
            "a sample: pass targets.squeeze(1)"
        )
    if targets.dtype not in (torch.int64, torch.uint8):
        return (
            f"the targets are {_kind(targets)}, and {name} wants numbers of classes: "
            "pass targets.long()"
        )
    counted = targets[targets != loss.ignore_index]
    for label in (int(counted.min()), int(counted.max())) if counted.numel() else ():
        if not 0 <= label < classes:
            return (
                f"a label is {label}, and the outputs have {classes} classes, from 0 "
                f"to {classes - 1}: number the labels from 0, or give the model more "
                "outputs"
            )
    return ""


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


# Messages of torch about sizes that do not fit.
_OF_SHAPES = re.compile(
    r"shapes cannot be multiplied|size mismatch|must match the size|channels, but got"
    r"|normalized_shape|should be the same size|is invalid for input of size"
)


def input_misfit(model: nn.Module, inputs: Any, error: Exception) -> str:
    """Return what is wrong with the inputs, or nothing if that is unknown."""
    said = next(iter(str(error).splitlines()), "")
    if isinstance(error, RuntimeError) and _OF_SHAPES.search(str(error)):
        return (
            f"the model does not take inputs of shape {_shapes(inputs)} ({said}): pass "
            "samples along the first dimension, each of the shape that it was made for"
        )
    if kind := _foreign(model, inputs):
        own = next(iter({p.dtype: 0 for p in model.parameters()}), torch.float32)
        return (
            f"the model is {str(own).removeprefix('torch.')} and does not take inputs "
            f"that are {kind} ({said}): pass torch.as_tensor(inputs).to({own}), or "
            "convert the model"
        )
    return ""


def _shapes(inputs: Any) -> str:
    parts = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    return ", ".join(str(tuple(p.shape)) for p in parts if isinstance(p, Tensor))


def _foreign(model: nn.Module, inputs: Any) -> str:
    """Return the types of those inputs that do not have the parameters' dtype."""
    own = {parameter.dtype for parameter in model.parameters()}
    parts = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    kinds = [
        str(part.dtype).removeprefix("torch.")
        if isinstance(part, Tensor)
        else f"a {type(part).__name__}"
        for part in parts
        if not (isinstance(part, Tensor) and part.dtype in own)
    ]
    return ", ".join(dict.fromkeys(kinds))
