"""A :class:`Watcher` as a callback of Lightning and of Hugging Face Transformers."""

import importlib
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from torch import Tensor, nn

from theodolite.core import ConfigError, Row, Rows
from theodolite.runs import Tracker

from .attached import Attached, OnStep, inner_optimizer
from .probe import Probe
from .watcher import NAMESPACE, Watcher

# The two names of Lightning: each refuses callbacks of the other.
_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")
# Columns that describe a number; the other columns say which number it is.
_ABOUT = {
    "quantity", "value", "error", "step", "loss", "level",
    "status", "norm_mode", "norm_layers", "method", "seed", "cpu_s", "passes",
}  # fmt: skip


def lightning_callback(
    probes: Iterable[Probe],
    *,
    batch: Any = None,
    criterion: Any = None,
    max_share: float | None = None,
    trackers: Iterable[Tracker] = (),
    labels: Mapping[str, Any] | None = None,
    on_step: OnStep | None = None,
) -> Any:
    """Return a Lightning ``Callback`` that runs probes before each optimiser step.

    Probes see the step, weights, batch and loss that :func:`train` would show them:
    gradients are computed and not clipped, the update has not been made. Losses of
    accumulated batches are added, as Lightning has divided them. After the last update,
    probes that are due see the last batch and no loss. With several processes, the
    first one measures. Numbers also go to the trainer's loggers.

    Args:
        probes: Measurements on a schedule.
        batch: What probes see as ``data``, or a function that returns it; the batch of
            the step by default.
        criterion: What probes see as ``criterion``; the loss of the training step by
            default, if that calls the module itself.
        max_share: See :class:`Watcher`.
        trackers: See :class:`Watcher`.
        labels: Put on every row.
        on_step: Called before every update with the model, the step, the loss that the
            training computed (None if it was not seen) and the loss function's name.

    Returns:
        A callback; its ``watcher`` has ``rows()``, ``retired`` and ``skipped``.
    """
    loaded = [module for name in _LIGHTNING if (module := sys.modules.get(name))]
    for name in () if loaded else _LIGHTNING:
        try:
            loaded = [importlib.import_module(name)]
            break
        except ImportError:
            continue
    if not loaded:
        raise ConfigError(
            "Lightning is not installed, and this callback needs it: "
            "pip install 'theodolite[lightning]'"
        )
    bases = (_LightningHooks, *(library.Callback for library in loaded))
    made = type("LightningProbes", bases, {})
    attach = {"batch": batch, "criterion": criterion, "on_step": on_step}
    settings = {"max_share": max_share, "labels": labels}
    return made(probes, trackers, settings, attach)


def transformers_callback(
    probes: Iterable[Probe],
    *,
    batch: Any = None,
    criterion: Any = None,
    log: Callable[[dict[str, float]], None] | None = None,
    max_share: float | None = None,
    trackers: Iterable[Tracker] = (),
    labels: Mapping[str, Any] | None = None,
    on_step: OnStep | None = None,
) -> Any:
    """Return a ``TrainerCallback`` that runs probes before each optimiser step.

    Probes see the steps and weights that :func:`train` would show them: gradients are
    computed, the update has not been made. They run once more after the last update.
    Batch and loss are those of the step, or of the batch given here; its loss is
    computed when a probe is due or waits for a loss level. With several processes, the
    first one measures.

    Numbers go to ``state.log_history``. To send them to everything that the trainer
    reports to, add the callback by ``trainer.add_callback`` and pass
    ``log=trainer.log``.

    Args:
        probes: Measurements on a schedule.
        batch: What probes see as ``data`` (a mapping of the model's arguments or a
            pair), or a function that returns it; put on the model's device. The batch
            of the step by default.
        criterion: Module of outputs and targets, or function of model and batch; by
            default the loss of the step, or, with ``batch``, the one that the model
            returns.
        log: Called with the numbers.
        max_share: See :class:`Watcher`.
        trackers: See :class:`Watcher`.
        labels: Put on every row.
        on_step: Called before every update with the model, the step, the loss that the
            training computed (None if it was not seen) and the loss function's name.

    Returns:
        A callback; its ``watcher`` has ``rows()``, ``retired`` and ``skipped``.
    """
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise ConfigError(
            "transformers is not installed, and this callback needs it: "
            "pip install 'theodolite[transformers]'"
        ) from error
    made = type("TransformersProbes", (_TransformersHooks, TrainerCallback), {})
    attach = {"batch": batch, "criterion": criterion, "on_step": on_step}
    settings = {"max_share": max_share, "labels": labels}
    callback = made(probes, trackers, settings, attach)
    callback.send = log
    return callback


class _Loggers:
    """A tracker that writes rows to the trainer's own loggers, as named numbers."""

    def __init__(self, log: Callable[[dict[str, float], int], None]) -> None:
        self._log = log

    def start(self, spec: Mapping[str, Any]) -> None:
        """Do nothing: the trainer opens its loggers."""

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Log numbers by their names."""
        self._log(scalars(rows), step)

    def finish(self) -> None:
        """Do nothing: the trainer closes its loggers."""


class _Hooks(ABC):
    """What both callbacks share. Hooks read plain attributes only, so none raises."""

    def __init__(
        self,
        probes: Iterable[Probe],
        trackers: Iterable[Tracker],
        settings: Mapping[str, Any],
        attach: Mapping[str, Any],
    ) -> None:
        super().__init__()
        loggers = _Loggers(self._log)
        self.watcher = Watcher(probes, trackers=(*trackers, loggers), **settings)
        self._attach = attach
        self.attached: Attached | None = None
        self._trainer: Any = None

    def rows(self) -> Rows:
        """Return all that was measured so far."""
        return self.watcher.rows()

    def _begin(self, model: nn.Module, optimizer: Any, **more: Any) -> None:
        given = {**self._attach, **more}
        self.attached = Attached(self.watcher, model, optimizer, **given)
        self.attached.__enter__()

    def _end(self) -> None:
        if self.attached is not None:
            self.attached.__exit__(None)
        self._trainer = None

    @abstractmethod
    def _log(self, numbers: dict[str, float], step: int) -> None:
        """Log named numbers the way the library does."""


class _LightningHooks(_Hooks):
    _batch: Any = None
    _loss: Any = None
    _last: int | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # Without the optimiser, whose step runs forward and backward in a closure.
        self._begin(pl_module, None, fallback=lambda: self._batch)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        # Lightning has divided by the number of batches that it accumulates.
        now = loss.detach()
        self._loss = now if self._loss is None else self._loss + now

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        self._batch = batch

    def on_before_optimizer_step(
        self, trainer: Any, pl_module: Any, optimizer: Any
    ) -> None:
        loss, self._loss = self._loss, None
        # LBFGS evaluates its closure several times a step; the first is measured.
        if self.attached is not None and trainer.global_step != self._last:
            self._last, self._trainer = trainer.global_step, trainer
            self.attached.steps = trainer.global_step
            self.attached.before_update(inner_optimizer(optimizer), loss)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._trainer = trainer
        self._end()
        self._batch = self._loss = self._last = None

    def _log(self, numbers: dict[str, float], step: int) -> None:
        for logger in self._trainer.loggers:
            logger.log_metrics(numbers, step=step)


class _TransformersHooks(_Hooks):
    send: Callable[[dict[str, float]], None] | None = None

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None,
        optimizer: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        self._trainer, given = state, self._attach.get("batch")
        if given is None:
            self._begin(model, optimizer)
            return
        criterion = self._attach.get("criterion") or _model_loss
        self._begin(
            model,
            optimizer,
            batch=partial(_on_device, given, model),
            criterion=criterion,
            loss=partial(_loss_on, criterion),
        )

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, **_: Any
    ) -> None:
        if self.attached is not None:  # which counts from where a checkpoint was
            self.attached.steps = state.global_step

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end()

    def _log(self, numbers: dict[str, float], step: int) -> None:
        if self.send is not None:
            self.send(numbers)
        elif self._trainer is not None:
            epoch = self._trainer.epoch
            self._trainer.log_history.append({**numbers, "epoch": epoch, "step": step})


def _loss_on(criterion: Any, model: nn.Module, batch: Any) -> Tensor:
    """Return the loss of a given batch."""
    if not isinstance(criterion, nn.Module):
        return criterion(model, batch)
    inputs, targets = batch
    outputs = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
    return criterion(getattr(outputs, "logits", outputs), targets)


def _on_device(given: Any, model: nn.Module) -> Any:
    from accelerate.utils import send_to_device

    batch = given() if callable(given) else given
    return send_to_device(batch, next(model.parameters()).device)


def _model_loss(model: nn.Module, batch: Any) -> Tensor:
    """Return the loss that a model of the library computes itself."""
    return model(**batch).loss


def scalars(rows: Iterable[Row]) -> dict[str, float]:
    """Return the numbers of rows of one step by name.

    Rows that share a quantity are distinguished by their other labels.

    Example:
        >>> rows = [{"quantity": "top", "rank": 0, "value": 3.0},
        ...         {"quantity": "top", "rank": 1, "value": 2.0}]
        >>> scalars(rows)
        {'theodolite/top/rank=0': 3.0, 'theodolite/top/rank=1': 2.0}
    """
    rows = list(rows)
    count = Counter(row["quantity"] for row in rows)

    def name(row: Row) -> str:
        several = count[row["quantity"]] > 1
        labels = [f"{k}={v}" for k, v in row.items() if several and k not in _ABOUT]
        return "/".join((NAMESPACE, row["quantity"], *labels))

    numbers = [row for row in rows if isinstance(row["value"], int | float)]
    return {name(row): row["value"] for row in numbers}
