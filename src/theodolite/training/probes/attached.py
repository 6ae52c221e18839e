"""A watcher attached to a model and its optimiser: no call inside the loop."""

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from theodolite.core import Exclusive

from .step_recorder import StepRecorder
from .watcher import Watcher

OnStep = Callable[[nn.Module, int, Tensor | None, str], None]


class Attached:
    """Calls :meth:`Watcher.step` before every update, with the batch and the loss seen.

    It is used as a context. Probes that are due run once more after the last update,
    unless the loop raised. With several processes, the first one measures.

    Args:
        watcher: What to run.
        model: The model that is trained, as the loop calls it.
        optimizer: Its optimiser; None if :meth:`before_update` is called by hand.
        batch: What probes see as ``data``, or a function that returns it; the batch of
            the step by default.
        criterion: What probes see as ``criterion``; the loss that the loop computed
            by default. With a ``batch``, None is the loss that the model returns.
        loss: What probes see as ``loss``, as :meth:`Watcher.step` takes it; the loss
            that the loop computed by default.
        on_step: Called before every update with the model, the step, its loss (None if
            it was not seen) and the name of the loss function.
        fallback: Returns the batch if the model was not called itself.

    Attributes:
        steps: Updates so far.
        over: Whether the training has ended.
    """

    def __init__(
        self,
        watcher: Watcher,
        model: nn.Module,
        optimizer: Optimizer | None = None,
        *,
        batch: Any = None,
        criterion: Any = None,
        loss: Any = None,
        on_step: OnStep | None = None,
        fallback: Callable[[], Any] | None = None,
    ) -> None:
        self._watcher, self.model = watcher, inner_model(model)
        self.optimizer = optimizer and inner_optimizer(optimizer)
        self._batch, self._criterion, self._loss = batch, criterion, loss
        self._on_step, self._fallback = on_step, fallback
        self._recorder = StepRecorder(model)
        self.steps, self.over = 0, False
        self._handle: Any = None
        self._open = False

    def __enter__(self) -> Self:
        if not _leads():
            return self
        with Exclusive():
            self._recorder.open()
            self._open = True
            if self.optimizer is not None:
                hook = self.optimizer.register_step_pre_hook
                self._handle = hook(lambda *_: self.before_update())
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if not self._open:
            return
        with Exclusive():  # so that Ctrl-C leaves no hooks behind
            self._open = False
            if self._handle is not None:
                self._handle.remove()
            self._recorder.close()
            self.over = True
            try:
                if kind is None:  # a loop that raised is not measured again
                    self._measure(None)
            finally:
                self._recorder.forget()
                self._watcher.finish()

    def before_update(
        self, optimizer: Optimizer | None = None, loss: Tensor | None = None
    ) -> None:
        """Measure what is due before an update; called by a hook of the optimiser.

        Args:
            optimizer: The optimiser, if it was not known before.
            loss: The loss of the step, if it is known.
        """
        if not self._open:
            return
        self.optimizer = self.optimizer or optimizer
        with Exclusive():
            values = self._recorder.values
            if loss is None and values:
                loss = torch.stack([value.reshape(()) for value in values]).sum()
            if self._on_step is not None:
                self._on_step(self.model, self.steps, loss, self._recorder.function)
            self._recorder.close()  # instruments see the model as its owner left it
            try:
                self._measure(loss)
            finally:
                self.steps += 1
                self._recorder.next_step()
                self._recorder.open()

    def _measure(self, loss: Tensor | None) -> None:
        given = self._batch is not None
        self._watcher.step(
            self.model,
            loss=loss if self._loss is None else self._loss,
            batch=self._batch if given else self._seen_batch,
            step=self.steps,
            criterion=self._criterion if given else self._seen_loss(),
            optimizer=self.optimizer,
        )

    def _seen_batch(self) -> Any:
        if self._fallback is not None and not self._recorder.called:
            return self._fallback()
        return self._recorder.batch()

    def _seen_loss(self) -> Any:
        seen = self._recorder.criterion()
        return self._criterion if seen is None else seen


def inner_optimizer(optimizer: Optimizer) -> Optimizer:
    """Return the optimiser inside a wrapper."""
    while isinstance(inner := getattr(optimizer, "optimizer", None), Optimizer):
        optimizer = inner
    return optimizer


def inner_model(model: nn.Module) -> nn.Module:
    """Return the network inside a compiled or distributed wrapper."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(
            model, nn.DataParallel | nn.parallel.DistributedDataParallel
        ):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _leads() -> bool:
    """Return whether this process has rank 0, or is alone."""
    team = torch.distributed
    return not (team.is_available() and team.is_initialized()) or team.get_rank() == 0
