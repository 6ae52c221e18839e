"""The scalar that is differentiated: model, batch and loss in one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError

Batch = Any
Loss = nn.Module | Callable[[nn.Module, Batch], Tensor]


class HalfSquareLoss(nn.Module):
    r"""$\frac{1}{2m}\sum_\mu \|f(x^\mu) - y^\mu\|^2$, summed over outputs.

    Example:
        >>> HalfSquareLoss()(torch.ones(4, 2), torch.zeros(4, 2))
        tensor(1.)
    """

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch."""
        if outputs.shape != targets.shape:
            raise MeasurementError(
                f"outputs of shape {tuple(outputs.shape)} and targets of shape "
                f"{tuple(targets.shape)}: the square loss wants equal shapes, such as "
                "one-hot targets"
            )
        return (outputs - targets).square().sum() / (2 * len(outputs))


def evaluate(model: nn.Module, batch: Batch, loss: Loss) -> Tensor:
    """Return the loss as a scalar tensor, or say why it is none."""
    if isinstance(loss, nn.Module):
        inputs, targets = _pair(batch)
        value = loss(model(inputs), targets)
    else:
        value = loss(model, batch)
    if not isinstance(value, Tensor) or value.numel() != 1:
        came = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise MeasurementError(
            f"the loss returned {came}, wanted one number: reduce it, "
            "for instance by its mean"
        )
    if not torch.isfinite(value).all():
        raise MeasurementError(
            f"the loss is {value.item()}: check the batch and the weights for NaN and "
            "infinity, and the dtype for overflow"
        )
    return value.reshape(())


def chosen_parameters(
    model: nn.Module, names: Sequence[str] | None
) -> dict[str, nn.Parameter]:
    """Return the parameters by name: all that require a gradient, or those named."""
    known = dict(model.named_parameters())
    if names is None:
        chosen = {name: p for name, p in known.items() if p.requires_grad}
        if not chosen:
            raise MeasurementError(
                f"{type(model).__name__} has no parameters that require a gradient: "
                "pass a module with weights, or unfreeze some"
            )
        return chosen
    missing = [name for name in names if name not in known]
    if missing or not names:
        raise MeasurementError(
            f"parameters {missing or 'none'} asked for, but the model has "
            f"{', '.join(list(known)[:8])}{'…' if len(known) > 8 else ''}: name those"
        )
    return {name: known[name] for name in names}


def _pair(batch: Batch) -> tuple[Any, Any]:
    if not isinstance(batch, Sequence) or len(batch) != 2:
        raise MeasurementError(
            f"a batch of type {type(batch).__name__} came with a loss module, which "
            "wants a pair (inputs, targets): pass one, or loss(model, batch) -> scalar"
        )
    return batch[0], batch[1]
