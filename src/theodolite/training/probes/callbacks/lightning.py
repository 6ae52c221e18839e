"""Probes on a Lightning training: the hooks around a :class:`Watcher`."""

import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from theodolite.core import ConfigError, Row, Rows
from theodolite.runs import Tracker
from theodolite.training.probes.callbacks.scalars import scalars
from theodolite.training.probes.probes import Probe
from theodolite.training.probes.watching import Watcher

# Its two names: a callback of one is refused by, or strange to, the other.
_LIBRARIES = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(
    probes: Iterable[Probe],
    *,
    batch: Any = None,
    criterion: Any = None,
    namespace: str = "theodolite",
    max_share: float | None = None,
    trackers: Iterable[Tracker] = (),
    labels: Mapping[str, Any] | None = None,
) -> Any:
    """Return a Lightning ``Callback`` that runs probes before each optimiser step.

    Step, weights, batch and loss are those of the plain loop: gradients are there, the
    update is still to come. Losses of accumulated batches are averaged. After the last
    update probes that are due then see the last batch, and no loss. Of several
    processes the first measures. Numbers also go to the trainer's loggers.

    Args:
        probes: Measurements on a schedule.
        batch: What probes see as ``data``, or a function that returns it; the batch of
            the step by default.
        criterion: What probes see as ``criterion``.
        namespace: Put before every quantity.
        max_share: See :class:`Watcher`.
        trackers: See :class:`Watcher`.
        labels: Put on every row.

    Returns:
        A callback; its ``watcher`` has ``rows()``, ``retired`` and ``skipped``.
    """
    made = type("LightningProbes", (_Hooks, *_bases()), {})
    return made(
        Watcher(
            probes,
            namespace=namespace,
            max_share=max_share,
            trackers=(*trackers, loggers := _Loggers()),
            labels=labels,
        ),
        loggers,
        batch,
        criterion,
    )


def _bases() -> tuple[type, ...]:
    loaded = [module for name in _LIBRARIES if (module := sys.modules.get(name))]
    for name in () if loaded else _LIBRARIES:
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
    return tuple(library.Callback for library in loaded)


class _Loggers:
    """The loggers of a trainer, as a tracker."""

    def __init__(self) -> None:
        self.trainer: Any = None
        self._namespace = ""

    def start(self, spec: Mapping[str, Any]) -> None:
        """Learn the namespace; Lightning opens its loggers itself."""
        self._namespace = str(spec["study"])

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Log numbers by their names."""
        for logger in self.trainer.loggers:
            logger.log_metrics(scalars(rows, self._namespace), step=step)

    def finish(self) -> None:
        """Do nothing: Lightning closes its loggers."""


class _Hooks:
    """What Lightning calls. Each hook takes plain attributes only, so none raises."""

    def __init__(
        self, watcher: Watcher, loggers: _Loggers, batch: Any, criterion: Any
    ) -> None:
        super().__init__()
        self.watcher = watcher
        self._loggers, self._criterion = loggers, criterion
        self._given = batch
        self._batch: Any = None
        self._loss: Any = None
        self._last: int | None = None

    def rows(self) -> Rows:
        """Return all that was measured so far."""
        return self.watcher.rows()

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
        self._batch = self._loss = self._last = self._loggers.trainer = None

    def _watch(self, trainer: Any, module: Any, loss: Any) -> None:
        step = trainer.global_step
        # LBFGS evaluates its closure several times a step; the first is measured.
        if step == self._last or not trainer.is_global_zero:
            return
        self._last, self._loggers.trainer = step, trainer
        self.watcher.step(
            module,
            loss=loss,
            batch=self._batch,
            step=step,
            criterion=self._criterion,
        )
