"""Hooks that keep the batch that a training passes through its model."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError


class Seen:
    """Keeps the batches that a training passes through its model, at chosen steps.

    Passes without gradients are validation and are ignored.

    Args:
        model: The model, as the loop calls it.
        loss: The loss; if it is a module, the targets are seen too.
        wanted: Returns whether the current step is measured.

    Attributes:
        value: The loss that the training computed, NaN if it was not seen.
        own: Whether the model computes its loss itself.
    """

    def __init__(self, model: nn.Module, loss: Any, wanted: Callable[[], bool]) -> None:
        self._model, self._loss, self._wanted = model, loss, wanted
        self._handles: list[Any] = []
        self._inputs: Any = None
        self._targets: Any = None
        self.value: float = math.nan
        self.own = False

    def open(self) -> None:
        """Set the hooks."""
        model = self._model
        self._handles = [
            model.register_forward_pre_hook(self._enter, with_kwargs=True),
            model.register_forward_hook(self._leave),
        ]
        if isinstance(self._loss, nn.Module):
            self._handles += [
                self._loss.register_forward_pre_hook(self._judge),
                self._loss.register_forward_hook(self._judged),
            ]

    def lift(self) -> None:
        """Remove the hooks; keep what was seen."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def forget(self) -> None:
        """Drop the batch."""
        self._inputs, self._targets, self.value = None, None, math.nan

    def batch(self) -> Any:
        """Return the last batch: a pair if targets are known.

        Raises:
            MeasurementError: The model was not called, or its call cannot be repeated.
        """
        if self._inputs is None:
            raise MeasurementError(
                "the model was not called with gradients before this step: train the "
                "model that is watched, or pass batches="
            )
        inputs = _as_one(self._model, *self._inputs)
        return inputs if self._targets is None else (inputs, self._targets)

    def _enter(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if self._looking():
            self._inputs = (_detached(args), _detached(kwargs))
            self._targets, self.value = None, math.nan

    def _leave(self, module: Any, args: Any, outputs: Any) -> None:
        if self._looking() and self._loss is None:
            own = _own_loss(outputs)
            self.own = own is not None
            self.value = math.nan if own is None else own

    def _judge(self, module: Any, args: tuple[Any, ...]) -> None:
        if self._looking() and len(args) > 1:
            self._targets = _detached(args[1])

    def _judged(self, module: Any, args: Any, value: Any) -> None:
        if self._looking() and isinstance(value, Tensor) and value.numel() == 1:
            self.value = float(value.detach())

    def _looking(self) -> bool:
        return torch.is_grad_enabled() and self._wanted()


def own_loss(model: nn.Module, batch: Any) -> Tensor:
    """Return the loss that a model computes itself, given labels."""
    return model(**batch).loss


def _own_loss(outputs: Any) -> float | None:
    loss = (
        outputs.get("loss")
        if isinstance(outputs, Mapping)
        else getattr(outputs, "loss", None)
    )
    if isinstance(loss, Tensor) and loss.numel() == 1:
        return float(loss.detach())
    return None


def _as_one(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return arguments as instruments take them: one value, or a mapping of names."""
    if len(args) == 1 and not kwargs:
        return args[0]
    if not args:
        return kwargs
    forward = getattr(model, "_orig_mod", model).forward
    kinds = inspect.signature(forward).parameters
    names = inspect.signature(forward).bind(*args, **kwargs).arguments
    if any(kinds[n].kind is inspect.Parameter.VAR_POSITIONAL for n in names):
        raise MeasurementError(
            f"the model was called with {len(args)} arguments that have no names: pass "
            "batches= as a mapping of keywords"
        )
    for name in [n for n in names if kinds[n].kind is inspect.Parameter.VAR_KEYWORD]:
        names |= names.pop(name)
    return dict(names)


def _detached(value: Any) -> Any:
    """Return a value whose tensors carry no graph."""
    if isinstance(value, Tensor):
        return value.detach()
    if type(value) in (tuple, list):
        return type(value)(_detached(one) for one in value)
    if isinstance(value, Mapping):
        return {key: _detached(one) for key, one in value.items()}
    return value
