"""Losses of any kind as modules, about which more is known than about functions."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import MeasurementError

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


_MODEL_NAMES = {"model", "net", "network", "module"}


_BATCH_NAMES = {"batch", "data", "sample", "samples"}


_OUTPUT_NAMES = {
    "input", "inputs", "output", "outputs", "out", "logit", "logits", "scores",
    "pred", "preds", "prediction", "predictions", "predicted", "y_pred", "y_hat",
}  # fmt: skip


_TARGET_NAMES = {"target", "targets", "label", "labels", "y", "y_true", "truth"}


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
    if first in _MODEL_NAMES or second in _BATCH_NAMES:
        return loss
    return (
        FunctionLoss(loss)
        if first in _OUTPUT_NAMES or second in _TARGET_NAMES
        else loss
    )


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # as for code written in C
        return {}
