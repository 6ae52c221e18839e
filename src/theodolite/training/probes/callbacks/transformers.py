"""Probes on a Hugging Face ``Trainer``: the hooks around a :class:`Watcher`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from theodolite.core import ConfigError, Row, Rows
from theodolite.runs import Tracker
from theodolite.training.probes.callbacks.scalars import scalars
from theodolite.training.probes.probes import Probe
from theodolite.training.probes.watching import Watcher


def transformers_callback(
    probes: Iterable[Probe],
    *,
    batch: Any = None,
    criterion: Any = None,
    log: Callable[[dict[str, float]], None] | None = None,
    namespace: str = "theodolite",
    max_share: float | None = None,
    trackers: Iterable[Tracker] = (),
    labels: Mapping[str, Any] | None = None,
) -> Any:
    """Return a ``TrainerCallback`` that runs probes before each optimiser step.

    Steps and weights are those of the plain loop: gradients are there, the update is
    still to come, and once more after the last. A ``Trainer`` shows its callbacks
    neither batch nor loss, so the loss is that of the batch given here, computed when
    a probe is due or waits for a level. Of several processes the first measures.

    Numbers go to ``state.log_history``; to have them in all that the trainer reports
    to, add the callback with ``trainer.add_callback`` and pass ``log=trainer.log``.

    Args:
        probes: Measurements on a schedule.
        batch: What probes see as ``data`` (a mapping of the model's arguments or a
            pair), or a function that returns it; put on the model's device.
        criterion: Module of outputs and targets, or function of model and batch; by
            default the loss that the model returns for a batch with labels.
        log: What to call with the numbers.
        namespace: Put before every quantity.
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
    history = _History(log)
    watcher = Watcher(
        probes,
        namespace=namespace,
        max_share=max_share,
        trackers=(*trackers, history),
        labels=labels,
    )
    made = type("TransformersProbes", (_Hooks, TrainerCallback), {})
    return made(watcher, history, batch, criterion)


class _History:
    """The log of a trainer, as a tracker."""

    def __init__(self, log: Callable[[dict[str, float]], None] | None) -> None:
        self.state: Any = None
        self._namespace = ""
        self._log = log

    def start(self, spec: Mapping[str, Any]) -> None:
        """Learn the namespace; the trainer opens its reports itself."""
        self._namespace = str(spec["study"])

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Log numbers by their names."""
        numbers = scalars(rows, self._namespace)
        if self._log is not None:
            self._log(numbers)
        else:
            epoch = self.state.epoch
            self.state.log_history.append({**numbers, "epoch": epoch, "step": step})

    def finish(self) -> None:
        """Do nothing: the trainer closes what it reports to."""


class _Hooks:
    """What the trainer calls. Each hook takes plain attributes only, so none raises."""

    def __init__(
        self, watcher: Watcher, history: _History, batch: Any, criterion: Any
    ) -> None:
        super().__init__()
        self.watcher = watcher
        self._history, self._batch, self._criterion = history, batch, criterion

    def rows(self) -> Rows:
        """Return all that was measured so far."""
        return self.watcher.rows()

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        self._watch(state, model)

    def on_train_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        self._watch(state, model)
        self.watcher.finish()
        self._history.state = None

    def _watch(self, state: Any, model: Any) -> None:
        if not state.is_world_process_zero:
            return
        self._history.state = state
        self.watcher.step(
            model,
            loss=None if self._batch is None else self._loss,
            batch=None if self._batch is None else lambda: self._on_device(model),
            step=state.global_step,
            criterion=_own_loss if self._criterion is None else self._criterion,
        )

    def _loss(self, model: nn.Module, batch: Any) -> Tensor:
        if not isinstance(self._criterion, nn.Module):
            return (self._criterion or _own_loss)(model, batch)
        inputs, targets = batch
        outputs = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
        return self._criterion(getattr(outputs, "logits", outputs), targets)

    def _on_device(self, model: nn.Module) -> Any:
        from accelerate.utils import send_to_device

        batch = self._batch() if callable(self._batch) else self._batch
        return send_to_device(batch, next(model.parameters()).device)


def _own_loss(model: nn.Module, batch: Any) -> Tensor:
    """Return the loss that a model of the library computes itself."""
    return model(**batch).loss
