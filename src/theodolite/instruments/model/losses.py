"""Losses of any kind: modules, functions of outputs and targets, and common errors."""

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import MeasurementError, TheodoliteError

# Functions equal to a module with default settings. More is known about modules,
# such as which targets they ignore.
_AS_MODULES: dict[Any, type[nn.Module]] = {
    functional.cross_entropy: nn.CrossEntropyLoss,
    functional.nll_loss: nn.NLLLoss,
    functional.mse_loss: nn.MSELoss,
    functional.l1_loss: nn.L1Loss,
    functional.smooth_l1_loss: nn.SmoothL1Loss,
    functional.huber_loss: nn.HuberLoss,
    functional.binary_cross_entropy: nn.BCELoss,
    functional.binary_cross_entropy_with_logits: nn.BCEWithLogitsLoss,
    functional.poisson_nll_loss: nn.PoissonNLLLoss,
}
_MODELS = {"model", "net", "network", "module"}
_BATCHES = {"batch", "data", "sample", "samples"}
_OUTPUTS = {
    "input", "inputs", "output", "outputs", "out", "logit", "logits", "scores",
    "pred", "preds", "prediction", "predictions", "predicted", "y_pred", "y_hat",
}  # fmt: skip
_TARGETS = {"target", "targets", "label", "labels", "y", "y_true", "truth"}
_LOSSES = nn.MSELoss.__module__
_TORCH = Path(torch.__file__).parent
_OF_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss)
_BY_ELEMENTS = (
    nn.MSELoss,
    nn.L1Loss,
    nn.SmoothL1Loss,
    nn.HuberLoss,
    nn.BCELoss,
    nn.BCEWithLogitsLoss,
)


class FunctionLoss(nn.Module):
    """A function of outputs and targets as a loss module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        for name, kind in (("reduction", str), ("ignore_index", int)):
            stated = _parameters(function).get(name)
            if stated is not None and isinstance(stated.default, kind):
                setattr(self, name, stated.default)

    def forward(self, outputs: Any, targets: Any) -> Tensor:
        """Return the loss of a batch."""
        return self.function(outputs, targets)


def as_loss(loss: Any) -> Any:
    """Return a loss of outputs and targets as a module; leave other losses unchanged.

    A function of torch becomes its module. Another function becomes a module if the
    names of its arguments are those of outputs and targets. ``loss(model, batch)`` is
    returned unchanged.

    Example:
        >>> as_loss(functional.cross_entropy)
        CrossEntropyLoss()
        >>> type(as_loss(lambda outputs, targets: (outputs - targets).mean())).__name__
        'FunctionLoss'
    """
    if isinstance(loss, type) and issubclass(loss, nn.Module):
        raise MeasurementError(
            f"the loss is the class {loss.__name__}, wanted is a loss: make one, "
            f"{loss.__name__}()"
        )
    if not callable(loss):
        raise MeasurementError(
            f"the loss is {loss!r}, which cannot be called: pass a loss of torch, such "
            "as nn.CrossEntropyLoss(), or a function of outputs and targets, or of "
            "model and batch"
        )
    if isinstance(loss, nn.Module):
        return loss
    try:
        if loss in _AS_MODULES:
            return _AS_MODULES[loss]()
    except TypeError:  # unhashable, so none of them
        pass
    first, second = (*_parameters(loss), "", "")[:2]
    if first in _MODELS or second in _BATCHES:
        return loss
    return FunctionLoss(loss) if first in _OUTPUTS or second in _TARGETS else loss


def judged(loss: nn.Module, outputs: Any, targets: Any) -> Any:
    """Return the value of a loss module, or raise if outputs and targets do not fit."""
    name = type(loss).__name__
    if type(loss).__module__ == _LOSSES and not isinstance(outputs, Tensor):
        raise MeasurementError(
            f"the model returned a {type(outputs).__name__}, and {name} wants one "
            "tensor: pass loss=lambda model, batch: …, which picks it"
        )
    if isinstance(outputs, Tensor) and isinstance(targets, Tensor):
        spread = isinstance(loss, _BY_ELEMENTS) and outputs.shape != targets.shape
        # On a GPU a label out of range makes the device unusable for the process.
        if spread or (targets.is_cuda and isinstance(loss, _OF_CLASSES)):
            if reason := _misfit(loss, outputs, targets):
                raise MeasurementError(reason)
    try:
        return loss(outputs, targets)
    except TheodoliteError:
        raise
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        both = isinstance(outputs, Tensor) and isinstance(targets, Tensor)
        if both and _says_torch(error):
            if reason := _misfit(loss, outputs, targets):
                raise MeasurementError(reason) from error
        raise


def _says_torch(error: BaseException) -> bool:
    """Return whether torch raised the error, and not the code of a user's loss."""
    if isinstance(error, RuntimeError):  # errors of operators, wherever they are called
        return True
    frames = list(traceback.walk_tb(error.__traceback__))
    return _TORCH in Path(frames[-1][0].f_code.co_filename).parents


def _misfit(loss: nn.Module, outputs: Tensor, targets: Tensor) -> str:
    """Return what is wrong with the targets, or nothing if that is unknown."""
    if outputs.ndim and targets.ndim and len(outputs) != len(targets):
        return (
            f"{len(outputs)} outputs and {len(targets)} targets came: pass one target "
            "a sample"
        )
    if isinstance(loss, _OF_CLASSES):
        return _misfit_of_classes(loss, outputs, targets)
    name = type(loss).__name__
    if isinstance(loss, _BY_ELEMENTS) and outputs.shape != targets.shape:
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


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # as for code written in C
        return {}
