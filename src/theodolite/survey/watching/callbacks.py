"""Callbacks for Lightning and Hugging Face that watch a training."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from theodolite.core import ConfigError, NormMode
from theodolite.instruments import Batches, Loss, as_loss
from theodolite.training import Snapshot, lightning_callback

from .context import Watch, check_every
from .logbook import Logbook
from .quantities import Scene


def lightning_watch(
    every: int = 100,
    *,
    loss: Loss | None = None,
    batch: Any = None,
    quantities: Iterable[str] | None = None,
    norm_mode: NormMode | str = "as_is",
    seed: int = 0,
    live: bool = True,
    html: str | Path | None = None,
) -> Any:
    """Return a Lightning ``Callback`` that watches a training as :func:`watch` does.

    Numbers also go to the trainer's loggers.

    Args:
        every: Steps from one look to the next.
        loss: What is differentiated for ``sharpness``; a module of outputs and targets,
            or ``loss(module, batch)``.
        batch: What to measure on, or a function that returns it; the batch of the step
            by default.
        quantities: See :func:`watch`.
        norm_mode: See :func:`watch`.
        seed: Seed of all random numbers.
        live: Whether to draw in a terminal.
        html: File to write a page to at the end.

    Returns:
        A callback; its ``course()`` is what was seen so far.
    """
    check_every(every)
    scene = Scene(
        norm_mode=NormMode(norm_mode),
        seed=seed,
        insist=quantities is not None,
        optimizer=_of_trainer,
    )
    logbook = Logbook(
        scene,
        every=every,
        quantities=quantities,
        live=live,
        html=html,
    )
    callback = lightning_callback(
        logbook.probes,
        batch=batch,
        criterion=None if loss is None else as_loss(loss),
        max_share=1,
        trackers=[logbook.telling],
    )
    logbook.retired = lambda: callback.watcher.retired
    callback.course = logbook.course
    return callback


def _of_trainer(at: Snapshot) -> Optimizer | None:
    trainer: Any = getattr(at.model, "_trainer", None)
    optimizers = getattr(trainer, "optimizers", None) or [None]
    return optimizers[0]


def transformers_watch(
    every: int = 100,
    *,
    loss: Loss | None = None,
    batches: Batches | None = None,
    quantities: Iterable[str] | None = None,
    norm_mode: NormMode | str = "as_is",
    seed: int = 0,
    live: bool = True,
    html: str | Path | None = None,
) -> Any:
    """Return a ``TrainerCallback`` that watches a training as :func:`watch` does.

    Batches are seen on their way into the model; the loss is the model's own.

    Args:
        every: Steps from one look to the next.
        loss: See :func:`watch`.
        batches: See :func:`watch`.
        quantities: See :func:`watch`.
        norm_mode: See :func:`watch`.
        seed: Seed of all random numbers.
        live: Whether to draw in a terminal.
        html: File to write a page to at the end.

    Returns:
        A callback; its ``course()`` is what was seen so far, once the training began.
    """
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise ConfigError(
            "transformers is not installed, and this callback needs it: "
            "pip install 'theodolite[transformers]'"
        ) from error
    check_every(every)
    settings = {
        "loss": loss,
        "batches": batches,
        "quantities": quantities,
        "norm_mode": NormMode(norm_mode),
        "seed": seed,
        "live": live,
        "html": html,
    }
    made = type("TransformersWatch", (_Hooks, TrainerCallback), {})
    return made(every, settings)


class _Hooks:
    """What the trainer calls: a watch is opened at the start and closed at the end."""

    def __init__(self, every: int, settings: dict[str, Any]) -> None:
        super().__init__()
        self._every, self._settings = every, settings
        self.watched: Watch | None = None

    def course(self) -> Any:
        """Return what was seen so far, None before the training."""
        return None if self.watched is None else self.watched.course()

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None,
        optimizer: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        self.watched = Watch(model, optimizer, self._every, **self._settings)
        self.watched.__enter__()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.watched is not None:
            self.watched.__exit__(None, None, None)
