"""Watch a plain training loop from outside."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn
from torch.optim import Optimizer

from theodolite.core import Exclusive, NormMode, Rows, as_integer
from theodolite.instruments import Batches, Loss, as_loss, read_batches, samples_in
from theodolite.training import Watcher

from .course import Course
from .logbook import Logbook
from .quantities import Scene
from .seen import Seen, own_loss
from .signals import loss_on


def watch(
    model: nn.Module,
    optimizer: Optimizer,
    every: int = 100,
    *,
    loss: Loss | None = None,
    batches: Batches | None = None,
    quantities: Iterable[str] | None = None,
    norm_mode: NormMode | str = "as_is",
    seed: int = 0,
    live: bool = True,
    html: str | Path | None = None,
) -> "Watch":
    """Watch a plain training loop: the survey's quantities along its steps.

    Measurements run before an update, when gradients exist, and once at the end. The
    batch is the one that the loop passed through the model, unless ``batches`` are
    given. An error is reported once and never raised. Model, optimiser and random
    states are the same as without the watch.

    Args:
        model: The model that is trained, as the loop calls it.
        optimizer: Its optimiser.
        every: Steps between two measurements.
        loss: The loss that is differentiated for ``sharpness``: the module that the
            loop calls, whose targets are then seen; or any loss, such as a function,
            with ``batches``. A model that returns its loss needs none.
        batches: Fixed batches to measure on; numbers of different steps are then easier
            to compare.
        quantities: Names among ``loss``, ``sharpness``, ``gradient_norm``,
            ``branch_gain``, ``effective_depth``, ``weight_norm``, ``rate``,
            ``forward_rms``, ``dead_share``; by default those of the first seven that
            this model has.
        norm_mode: Statistics that normalisation layers use while measuring; by default
            every module keeps its mode, unless the model draws random numbers: then
            all except norm layers are measured in eval mode. Other modes set all norm
            layers, and put all other modules into eval mode.
        seed: Seed of all random numbers.
        live: Whether to draw in a terminal; elsewhere nothing is drawn.
        html: File to write a page to at the end.

    Returns:
        A context; its ``course()`` returns what was measured so far.

    Raises:
        ConfigError: An argument is of the wrong kind.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> loss = nn.MSELoss()
        >>> x, y = torch.randn(16, 2), torch.randn(16, 1)
        >>> with watch(model, optimizer, every=2, loss=loss) as watched:
        ...     for _ in range(4):
        ...         optimizer.zero_grad()
        ...         loss(model(x), y).backward()
        ...         _ = optimizer.step()
        >>> watched.rows().where(quantity="sharpness").column("step")
        [0, 2, 4]
    """
    check_every(every)
    return Watch(
        model,
        optimizer,
        every,
        loss=loss,
        batches=batches,
        quantities=quantities,
        norm_mode=NormMode(norm_mode),
        seed=seed,
        live=live,
        html=html,
    )


class Watch:
    """A watched loop; made by :func:`watch` and used as a context."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        every: int,
        *,
        loss: Any,
        batches: Any,
        quantities: Iterable[str] | None,
        norm_mode: NormMode,
        seed: int,
        live: bool,
        html: str | Path | None,
    ) -> None:
        self._model, self._optimizer = _inner(model), _own(optimizer)
        self._every, self._loss = every, None if loss is None else as_loss(loss)
        self._batches = None if batches is None else list(read_batches(batches))
        scene = Scene(
            norm_mode=norm_mode,
            title=type(self._model).__name__,
            seed=seed,
            insist=quantities is not None,
            optimizer=lambda at: self._optimizer,
            loss_samples=self._loss_samples(),
        )
        self._logbook = Logbook(
            scene,
            every=every,
            quantities=quantities,
            live=live,
            html=html,
        )
        self._watcher = Watcher(
            self._logbook.probes, max_share=1, trackers=[self._logbook.telling]
        )
        self._seen = Seen(model, self._loss, self._due)
        self._steps, self._busy = 0, False
        self._handle: Any = None

    def __enter__(self) -> Self:
        self._logbook.settings = self._settings()
        self._logbook.retired = lambda: self._watcher.retired
        if not _leads():
            return self
        try:
            with Exclusive():
                self._seen.open()
                self._handle = self._optimizer.register_step_pre_hook(self._step)
        except BaseException:
            self.__exit__(KeyboardInterrupt)
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._handle is None:
            return
        with Exclusive():  # so that Ctrl-C leaves no hooks behind
            self._handle.remove()
            self._handle, self._logbook.scene.over = None, True
            try:
                if kind is None:  # a loop that raised is not measured again
                    self._look()
            finally:
                self._seen.lift()
                self._seen.forget()
                self._watcher.finish()

    def course(self) -> Course:
        """Return what was measured so far."""
        return self._logbook.course(self._steps)

    def rows(self) -> Rows:
        """Return all that was measured so far."""
        return self.course().rows()

    def _settings(self) -> dict[str, Any]:
        group = self._optimizer.param_groups[0]
        facts = {k: v for k, v in group.items() if v and isinstance(v, int | float)}
        loss = self._loss
        name = type(loss).__name__ if isinstance(loss, nn.Module) else "not given"
        given = self._batches is not None
        return {
            "optimizer": type(self._optimizer).__name__,
            **facts,
            "loss": getattr(loss, "__name__", name),
            "measured_on": "batches given" if given else "the batch of the step",
        }

    def _step(self, *_: Any) -> None:
        """Measure before the update of a step; called by a hook of the optimiser."""
        if not self._busy:
            self._look()
            self._steps += 1

    def _look(self) -> None:
        if self._steps % self._every:
            return
        with Exclusive():
            self._busy = True
            self._seen.lift()  # instruments see the model as its owner left it
            try:
                self._watcher.step(
                    self._model,
                    loss=self._value(),
                    batch=self._batch,
                    step=self._steps,
                    criterion=self._criterion(),
                )
            finally:
                self._seen.value = math.nan
                self._seen.open()
                self._busy = False

    def _batch(self) -> Any:
        return self._seen.batch() if self._batches is None else self._batches

    def _criterion(self) -> Any:
        return own_loss if self._loss is None and self._seen.own else self._loss

    def _value(self) -> Any:
        """Return the loss of the training, or a function for it on given batches."""
        loss, mode = self._loss, self._logbook.scene.norm_mode
        if self._batches is None or loss is None:
            return self._seen.value
        return lambda model, batches: loss_on(
            model, batches[0], loss=loss, norm_mode=mode
        )

    def _loss_samples(self) -> tuple[int, int] | None:
        """Return the samples of the first batch given, which the loss is of, and all.

        None where the loss is that of the training's own batch.
        """
        if self._batches is None or self._loss is None:
            return None
        counts = [samples_in(batch) or 1 for batch in self._batches]
        return counts[0], sum(counts)

    def _due(self) -> bool:
        return not self._busy and self._steps % self._every == 0


def check_every(every: Any) -> None:
    """Refuse an invalid number of steps."""
    as_integer("every", every, 1)


def _own(optimizer: Optimizer) -> Optimizer:
    """Return the optimiser inside a wrapper."""
    while isinstance(inner := getattr(optimizer, "optimizer", None), Optimizer):
        optimizer = inner
    return optimizer


def _inner(model: nn.Module) -> nn.Module:
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
