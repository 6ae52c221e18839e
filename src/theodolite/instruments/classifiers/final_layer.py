"""The last linear layer of a classifier, and the features that enter it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError

from .features import tensor_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """A linear classifier in float64, one row per class.

    Attributes:
        weight: Weights; a single row, whose sign decides between two classes, is
            replaced by two rows.
        bias: Biases.
    """

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, weight: Any, bias: Any = None) -> "Head":
        """Make a head from weights (classes, width) and biases (classes,)."""
        rows = tensor_of(weight).detach().double()
        if rows.ndim != 2 or not rows.numel() or not bool(torch.isfinite(rows).all()):
            raise MeasurementError(
                f"the head has weights of shape {tuple(rows.shape)}, wanted are finite "
                "ones, one row per class: pass those of the last linear layer"
            )
        shift = rows.new_zeros(len(rows))
        if bias is not None:
            shift = tensor_of(bias).detach().to(rows).reshape(-1)
        if shift.shape != rows.shape[:1] or not bool(torch.isfinite(shift).all()):
            raise MeasurementError(
                f"the head has {shift.numel()} biases and {len(rows)} rows of weights: "
                "pass a finite bias for each, or None"
            )
        if len(rows) == 1:
            rows, shift = torch.cat([-rows, rows]) / 2, torch.cat([-shift, shift]) / 2
        return cls(weight=rows, bias=shift)

    def to(self, device: torch.device) -> "Head":
        """Return the head on the device of the features."""
        return Head(weight=self.weight.to(device), bias=self.bias.to(device))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.weight)


def decisions_of(outputs: Tensor) -> Tensor:
    """Return the index of the predicted class, classes on the last axis."""
    if outputs.shape[-1] == 1:
        return (outputs[..., 0] > 0).long()
    return outputs.argmax(-1)


def last_linear(
    model: nn.Module, forward: Callable[[], Tensor]
) -> tuple[str, nn.Linear]:
    """Return the linear layer whose output is the classifier's; inside ``opened``.

    Args:
        model: The classifier.
        forward: Runs it once and returns its outputs.
    """
    calls: list[tuple[str, nn.Linear, Tensor]] = []
    handles = [
        module.register_forward_hook(_noting(calls, name))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        with torch.no_grad():
            outputs = forward()
    finally:
        for handle in handles:
            handle.remove()
    if calls and _same(calls[-1][2], outputs):
        return calls[-1][:2]
    ends = f"ends after linear layer {calls[-1][0]!r}" if calls else "has none"
    raise MeasurementError(
        f"the outputs are not those of a final linear layer ({type(model).__name__} "
        f"{ends}), which the classifier's weights are read from: name a layer whose "
        "output to measure with layer=…, or pick the logits with outputs=…"
    )


def _noting(
    calls: list[tuple[str, nn.Linear, Tensor]], name: str
) -> Callable[[nn.Linear, Any, Tensor], None]:
    def note(module: nn.Linear, args: Any, outputs: Tensor) -> None:
        calls.append((name, module, outputs))

    return note


def _same(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are the same, or views of the same in other shapes."""
    if one is other:
        return True
    return one.numel() == other.numel() and one.data_ptr() == other.data_ptr()
