"""A :class:`Watcher` as a callback of Lightning and of Hugging Face Transformers."""

import importlib
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from theodolite.core import ConfigError, Row, Rows
from theodolite.runs import Tracker

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
) -> Any:
    """Return a Lightning ``Callback`` that runs probes before each optimiser step.

    Probes see the step, weights, batch and loss that :func:`train` would show them:
    gradients are computed, the update has not been made. Losses of accumulated batches
    are averaged. After the last update, probes that are due see the last batch and no
    loss. With several processes, the first one measures. Numbers also go to the
    trainer's loggers.

    Args:
        probes: Measurements on a schedule.
        batch: What probes see as ``data``, or a function that returns it; the batch of
            the step by default.
        criterion: What probes see as ``criterion``.
        max_share: See :class:`Watcher`.
        trackers: See :class:`Watcher`.
        labels: Put on every row.

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
    settings = {"max_share": max_share, "labels": labels}
    made = type("LightningProbes", bases, {})
    return made(probes, batch, criterion, trackers, **settings)


def transformers_callback(
    probes: Iterable[Probe],
    *,
    batch: Any = None,
    criterion: Any = None,
    log: Callable[[dict[str, float]], None] | None = None,
    max_share: float | None = None,
    trackers: Iterable[Tracker] = (),
    labels: Mapping[str, Any] | None = None,
) -> Any:
    """Return a ``TrainerCallback`` that runs probes before each optimiser step.

    Probes see the steps and weights that :func:`train` would show them: gradients are
    computed, the update has not been made. They run once more after the last update. A
    ``Trainer`` gives its callbacks neither batch nor loss, so the loss is that of the
    batch given here, computed when a probe is due or waits for a loss level. With
    several processes, the first one measures.

    Numbers go to ``state.log_history``. To send them to everything that the trainer
    reports to, add the callback by ``trainer.add_callback`` and pass
    ``log=trainer.log``.

    Args:
        probes: Measurements on a schedule.
        batch: What probes see as ``data`` (a mapping of the model's arguments or a
            pair), or a function that returns it; put on the model's device.
        criterion: Module of outputs and targets, or function of model and batch; by
            default the loss that the model returns for a batch with labels.
        log: Called with the numbers.
        max_share: See :class:`Watcher`.
        trackers: See :class:`Watcher`.
        labels: Put on every row.

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
    settings = {"max_share": max_share, "labels": labels}
    callback = made(probes, batch, criterion, trackers, **settings)
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
        batch: Any,
        criterion: Any,
        trackers: Iterable[Tracker],
        **settings: Any,
    ) -> None:
        super().__init__()
        loggers = _Loggers(self._log)
        self.watcher = Watcher(probes, trackers=(*trackers, loggers), **settings)
        self._given, self._criterion = batch, criterion
        self._trainer: Any = None

    def rows(self) -> Rows:
        """Return all that was measured so far."""
        return self.watcher.rows()

    @abstractmethod
    def _log(self, numbers: dict[str, float], step: int) -> None:
        """Log named numbers the way the library does."""


class _LightningHooks(_Hooks):
    _batch: Any = None
    _loss: Any = None
    _last: int | None = None

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        self._batch = batch if self._given is None else self._given

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        # Lightning has divided by the number of batches that it accumulates.
        now = loss.detach()
        self._loss = now if self._loss is None else self._loss + now

    def on_before_optimizer_step(
        self, trainer: Any, pl_module: Any, optimizer: Any
    ) -> None:
        loss, self._loss = self._loss, None
        self._watch(trainer, pl_module, loss)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._watch(trainer, pl_module, None)
        self.watcher.finish()
        self._batch = self._loss = self._last = self._trainer = None

    def _watch(self, trainer: Any, module: Any, loss: Any) -> None:
        step = trainer.global_step
        # LBFGS evaluates its closure several times a step; the first is measured.
        if step == self._last or not trainer.is_global_zero:
            return
        self._last, self._trainer = step, trainer
        given = {"loss": loss, "batch": self._batch, "criterion": self._criterion}
        self.watcher.step(module, step=step, **given)

    def _log(self, numbers: dict[str, float], step: int) -> None:
        for logger in self._trainer.loggers:
            logger.log_metrics(numbers, step=step)


class _TransformersHooks(_Hooks):
    send: Callable[[dict[str, float]], None] | None = None

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        self._watch(state, model)

    def on_train_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        self._watch(state, model)
        self.watcher.finish()
        self._trainer = None

    def _watch(self, state: Any, model: Any) -> None:
        if not state.is_world_process_zero:
            return
        self._trainer = state
        self.watcher.step(
            model,
            loss=None if self._given is None else self._loss,
            batch=None if self._given is None else lambda: self._on_device(model),
            step=state.global_step,
            criterion=_model_loss if self._criterion is None else self._criterion,
        )

    def _loss(self, model: nn.Module, batch: Any) -> Tensor:
        if not isinstance(self._criterion, nn.Module):
            return (self._criterion or _model_loss)(model, batch)
        inputs, targets = batch
        outputs = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
        return self._criterion(getattr(outputs, "logits", outputs), targets)

    def _on_device(self, model: nn.Module) -> Any:
        from accelerate.utils import send_to_device

        batch = self._given() if callable(self._given) else self._given
        return send_to_device(batch, next(model.parameters()).device)

    def _log(self, numbers: dict[str, float], step: int) -> None:
        if self.send is not None:
            self.send(numbers)
        else:
            epoch = self._trainer.epoch
            self._trainer.log_history.append({**numbers, "epoch": epoch, "step": step})


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
