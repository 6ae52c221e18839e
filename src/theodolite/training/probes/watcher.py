"""Probes in your own training loop.

A failure is reported once and never raised, the model is not changed, and probes keep
to a share of the wall time if you ask for one.
"""

import math
import operator
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import torch
from torch import nn

from theodolite.core import ArgumentError, ConfigError, Row, Rows
from theodolite.instruments import Problem, preserve
from theodolite.runs import RunSpec, Tracker

from .probe import Probe, ProbeRunner, Snapshot, as_number, check_probes, warn

NAMESPACE = "theodolite"  # put before the quantity of every row


class _WatchedStep:
    """One step of the loop; its loss and batch are computed when first needed.

    Takes the arguments of :meth:`Watcher.step`, and ``fail``, which is called with the
    name of what could not be computed, and the error. ``costly`` says whether the loss
    is still to be computed.
    """

    def __init__(
        self,
        fail: Callable[[str, Exception], None],
        model: nn.Module,
        step: int,
        *,
        loss: Any,
        batch: Any,
        criterion: Any,
        optimizer: Any,
    ) -> None:
        self.model, self.step, self.criterion = model, step, criterion
        self.optimizer = optimizer
        self.costly = callable(loss)
        self._fail, self._given_loss, self._given_batch = fail, loss, batch
        self._loss: float | None = None
        self._has_batch = not callable(batch)

    @property
    def batch(self) -> Any:
        """The batch; None where it could not be made."""
        if not self._has_batch:
            self._has_batch = True
            make: Any = self._given_batch
            self._given_batch = None
            try:
                self._given_batch = make()
            except Exception as error:
                self._fail("batch", error)
        return self._given_batch

    @property
    def loss(self) -> float:
        """The loss as a number; NaN where there is none."""
        if self._loss is None:
            self._loss, self.costly = math.nan, False
            value: Any = self._given_loss
            try:
                if callable(value):
                    with preserve(self.model), torch.no_grad():
                        value = value(self.model, self.batch)
                self._loss = math.nan if value is None else as_number(value)
            except Exception as error:
                self._fail("loss", error)
        return self._loss

    def snapshot(self) -> Snapshot:
        """Return the network as probes see it."""
        return Snapshot(
            step=self.step,
            loss=self.loss,
            problem=lambda: Problem(
                self.model, self.batch, loss=self.criterion, norm_mode="as_is"
            ),
            optimizer=self.optimizer,
        )


class Watcher:
    """Run probes from inside a loop; call :meth:`step` before each update.

    Every probe measures when its schedule says so. With ``max_share``, a probe that is
    due is skipped while it has used more than its part of that share of the time since
    the first call; the live probes divide the share equally. The first measurement of
    each probe is always made, and so is that of a loss level, which is crossed once.

    Args:
        probes: Measurements on a schedule.
        max_share: Largest share of the wall time that probes may use, such as 0.1 for
            a run that ends a tenth later at worst; None, or 1, skips nothing.
        trackers: Receive the rows, such as ``runs.tracker_for("…")``.
        labels: Put on every row; they also distinguish runs in trackers.

    Attributes:
        skipped: Measurements left out to keep within the share, by probe.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> optim = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> probe = Probe("norm", lambda at: at.model.weight.norm())
        >>> watcher = Watcher([probe])
        >>> for _ in range(3):
        ...     optim.zero_grad()
        ...     loss = model(torch.ones(4, 2)).square().mean()
        ...     loss.backward()
        ...     _ = watcher.step(model, loss=loss)
        ...     optim.step()
        >>> watcher.rows().column("step"), watcher.rows()[0]["quantity"]
        ([0, 1, 2], 'theodolite/norm')
    """

    def __init__(
        self,
        probes: Iterable[Probe],
        *,
        max_share: float | None = None,
        trackers: Iterable[Tracker] = (),
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        share = 1 if max_share is None else max_share
        if not isinstance(share, int | float) or not 0 < share <= 1:
            raise ConfigError(
                f"max_share is {max_share!r}: pass a number above 0 and up to 1, the "
                "share of the wall time that probes may use, or None for all it takes"
            )
        checked = check_probes(probes)
        # One board per probe: a slow probe does not keep the others from measuring.
        self._runners = {probe.name: ProbeRunner([probe], labels) for probe in checked}
        self._spent = {probe.name: 0.0 for probe in checked}
        self.skipped = {probe.name: 0 for probe in checked}
        self._trackers = {
            f"tracker {i}, {type(t).__name__}": t for i, t in enumerate(trackers)
        }
        self._open: list[str] = []
        self._share = float(share)
        config = {
            "probes": {probe.name: repr(probe.when) for probe in checked},
            "labels": dict(labels or {}),
        }
        spec = RunSpec(
            paper="training", study=NAMESPACE, scale="watched", config=config
        )
        self._spec = {"digest": spec.digest, **spec.to_dict()}
        self._rows: list[Row] = []
        self._failed: dict[str, str] = {}
        self._began: float | None = None
        self._calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def rows(self) -> Rows:
        """Return all that was measured so far."""
        return Rows(self._rows)

    @property
    def retired(self) -> dict[str, str]:
        """What failed, with the reason: probes, trackers, ``loss`` and ``batch``."""
        runners = self._runners.values()
        return self._failed | {k: v for b in runners for k, v in b.retired.items()}

    def step(
        self,
        model: nn.Module,
        *,
        loss: Any = None,
        batch: Any = None,
        step: int | None = None,
        criterion: Any = None,
        optimizer: Any = None,
    ) -> Rows:
        """Measure what is due, and return its rows; raises nothing.

        Args:
            model: The network, before the update of this step.
            loss: Its loss: a number, a tensor, or a function of the model and the
                batch, called without gradients and only when it is needed.
            batch: What probes see as ``data``, or a function that returns it.
            step: Updates made so far; calls so far by default.
            criterion: What probes see as ``criterion``.
            optimizer: What probes see as ``optimizer``.
        """
        number, self._calls = self._calls, self._calls + 1
        try:
            number = number if step is None else operator.index(step)
            given = {"loss": loss, "batch": batch, "criterion": criterion}
            watched = _WatchedStep(
                self._fail, model, number, optimizer=optimizer, **given
            )
            return self._publish(self._visit(watched), number)
        except Exception as error:
            self._fail("watcher", error)
            return Rows()

    def finish(self) -> None:
        """Close the trackers; a later step would open them again."""
        for name in self._open:
            self._attempt(name, self._trackers[name].finish)
        self._open = []

    def _visit(self, watched: _WatchedStep) -> list[Row]:
        self._began = self._began or time.perf_counter()
        new: list[Row] = []
        for name, runner in self._runners.items():
            due, waits = runner.due(watched.step), runner.floor > -math.inf
            affordable = (due or waits) and self._affordable(name)
            start = time.perf_counter()
            # A loss that must be computed is computed only if there is time.
            compares = waits and (affordable or not watched.costly)
            if (compares and watched.loss <= runner.floor) or (due and affordable):
                new += self._measure(name, runner, watched)
            elif due:
                self._skip(name)
            self._spent[name] += time.perf_counter() - start
        return new

    def _measure(
        self, name: str, runner: ProbeRunner, watched: _WatchedStep
    ) -> list[Row]:
        try:
            if not isinstance(watched.model, nn.Module):
                raise ArgumentError(
                    f"the model is {watched.model!r}: pass the module that is trained"
                )
            snapshot = watched.snapshot()
            with preserve(watched.model), torch.enable_grad():
                return runner.visit(snapshot)
        except Exception as error:
            runner.retire(name, error, watched.step)
            return []
        finally:
            runner.rows.clear()  # the watcher keeps them, under the namespace

    def _affordable(self, name: str) -> bool:
        live = sum(not runner.retired for runner in self._runners.values())
        elapsed = time.perf_counter() - (self._began or 0.0)
        share = math.inf if self._share == 1 else self._share / live
        return self._spent[name] == 0 or self._spent[name] <= share * elapsed

    def _skip(self, name: str) -> None:
        self.skipped[name] += 1
        if self.skipped[name] == 1:
            warn(
                f"probe {name!r} has used more than its part of {self._share:.0%} of "
                "the wall time: it is skipped until there is time again, and counted "
                "in skipped; raise max_share or measure less often"
            )

    def _publish(self, rows: list[Row], step: int) -> Rows:
        named = [{**r, "quantity": f"{NAMESPACE}/{r['quantity']}"} for r in rows]
        self._rows += named
        # Trackers put the namespace before a name, and every label that changes.
        logged = [{k: v for k, v in row.items() if k != "loss"} for row in rows]
        for name, tracker in self._trackers.items() if logged else ():
            if name not in self._open:
                self._open.append(name)
                self._attempt(name, tracker.start, self._spec)
            self._attempt(name, tracker.log, logged, step)
        return Rows(named)

    def _attempt(self, name: str, action: Callable[..., object], *what: Any) -> None:
        if name not in self._failed:
            try:
                action(*what)
            except Exception as error:
                self._fail(name, error)

    def _fail(self, what: str, error: Exception) -> None:
        """Report once a failure of something other than a probe."""
        if what not in self._failed:
            self._failed[what] = f"{type(error).__name__}: {error}"
            warn(
                f"{what} failed with {self._failed[what]}: training goes on without "
                "it; mend it and run again"
            )
