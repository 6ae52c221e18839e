"""Measurements on a schedule, and the board that runs them and keeps their rows.

A probe that raises is reported once and retired; training goes on.
"""

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import ConfigError, Reading, Row, Rows, to_lines

from .schedules import Every, Schedule

if TYPE_CHECKING:
    from torch import nn

    from theodolite.instruments import Problem


class ProbeWarning(UserWarning):
    """A probe failed and was retired."""


class Snapshot:
    """A network at one step of its training, as probes see it.

    Args:
        step: Updates made so far.
        loss: Loss at this step, on the data or batch in use.
        problem: The network, its data and its loss, or a function that makes it.
        optimizer: The optimiser, if it is known.
        labels: Labels of the run, such as seed and learning rate.
    """

    def __init__(
        self,
        *,
        step: int,
        loss: float,
        problem: "Problem | Callable[[], Problem]",
        optimizer: Any = None,
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        self.step, self.loss, self.optimizer = step, loss, optimizer
        self.labels = dict(labels or {})
        self._problem: Any = problem

    @property
    def problem(self) -> "Problem":
        """The network, its data and its loss, for instruments; made on first use."""
        if callable(self._problem):
            self._problem = self._problem()
        return self._problem

    @property
    def model(self) -> "nn.Module":
        """The network."""
        return self.problem.model

    @property
    def data(self) -> Any:
        """Inputs and targets."""
        return self.problem.batches

    @property
    def criterion(self) -> Any:
        """The loss function, None if it is not known."""
        return self.problem.loss


Measure = Callable[[Snapshot], "float | Mapping[str, float] | Reading | Iterable[Row]"]


@dataclass(frozen=True)
class Probe:
    """A measurement on a schedule.

    Attributes:
        name: Name of its rows: ``name`` for a number or a quantity without a name,
            ``name/key`` for a mapping or the quantities of a reading.
        measure: Takes a :class:`Snapshot`; returns a number, a mapping of names to
            numbers, a reading or rows. Worker processes need one that is defined at
            the top level of a module.
        when: Its schedule.
    """

    name: str
    measure: Measure
    when: Schedule = field(default_factory=lambda: Every(1))

    def __post_init__(self) -> None:
        if not self.name or not callable(self.measure) or not is_schedule(self.when):
            raise ConfigError(
                f"probe {self.name!r}: give it a name, a function of a Snapshot and a "
                "schedule such as Every(10)"
            )


def check_probes(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Return probes whose names differ."""
    checked = (probes,) if isinstance(probes, Probe) else tuple(probes)
    for probe in checked:
        if not isinstance(probe, Probe):
            raise ConfigError(
                f"{probe!r} is not a Probe: write Probe('name', function, Every(10))"
            )
    names = [probe.name for probe in checked]
    if len(set(names)) < len(names):
        raise ConfigError(f"probes {names} share a name: give each its own")
    return checked


class ProbeRunner:
    """The probes of one run: which are due, their rows, and which have failed.

    Args:
        probes: What to measure.
        labels: Put on every row; they replace a reading's own, such as its seed.
        quiet: Whether the caller reports which probes have failed.
    """

    def __init__(
        self,
        probes: Iterable[Probe],
        labels: Mapping[str, Any] | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        self._quiet = quiet
        self._probes = {probe.name: probe for probe in check_probes(probes)}
        self._levels = {name: list(p.when.levels) for name, p in self._probes.items()}
        self.labels = dict(labels or {})
        self._seen: dict[str, int] = {}
        self.rows: list[Row] = []
        self.retired: dict[str, str] = {}

    @property
    def floor(self) -> float:
        """The next loss level that any probe waits for, -inf if none does."""
        waiting = [
            levels[0]
            for name, levels in self._levels.items()
            if levels and name not in self.retired
        ]
        return max(waiting, default=-math.inf)

    def due(self, step: int) -> bool:
        """Return whether the schedule of any live probe includes this step."""
        return any(
            probe.when.due(step)
            for name, probe in self._probes.items()
            if name not in self.retired
        )

    def schedule(self, last: int) -> np.ndarray:
        """Return a mask of the steps up to ``last`` at which a probe is due."""
        if not self._probes:
            return np.zeros(last + 1, dtype=bool)
        return np.array([self.due(step) for step in range(last + 1)])

    def visit(self, snapshot: Snapshot) -> list[Row]:
        """Measure what is due at a snapshot, keep the rows and return them."""
        new: list[Row] = []
        for name, probe in self._probes.items():
            if name in self.retired:
                continue
            levels = self._levels[name]
            crossed = [level for level in levels if snapshot.loss <= level]
            self._levels[name] = levels[len(crossed) :]
            again = self._seen.get(name) == snapshot.step
            if crossed or (probe.when.due(snapshot.step) and not again):
                self._seen[name] = snapshot.step
                rows = self._measure(probe, snapshot)
                marks = [{"level": level} for level in crossed] or [{}]
                new += [{**row, **mark} for mark in marks for row in rows]
        self.rows += new
        return new

    def _measure(self, probe: Probe, snapshot: Snapshot) -> list[Row]:
        try:
            rows = _rows_of(probe.name, probe.measure(snapshot))
            here = {"step": snapshot.step, "loss": snapshot.loss}
            rows = list(Rows({**here, **row, **self.labels} for row in rows))
            to_lines(rows)  # a row that cannot be saved must fail here, not at the end
            return rows
        except Exception as error:
            self.retire(probe.name, error, snapshot.step)
            return []

    def retire(self, name: str, error: Exception, step: int) -> None:
        """Stop using a probe, and warn of it."""
        reason = f"{type(error).__name__}: {error}"
        self.retired[name] = reason
        if not self._quiet:
            warn(
                f"probe {name!r} raised {reason} at step {step}: it is retired and "
                "training goes on; mend it and run again"
            )


def warn(message: str, category: type[Warning] = ProbeWarning) -> None:
    """Issue a warning; log it where warnings are errors, which would end training."""
    try:
        warnings.warn(message, category, stacklevel=3)
    except category:
        logging.getLogger("theodolite").warning(message)


def _rows_of(name: str, measured: Any) -> list[Row]:
    if isinstance(measured, Reading):
        measured = measured.rows()
    elif isinstance(measured, Mapping):
        measured = [
            {"quantity": key, "value": as_number(v)} for key, v in measured.items()
        ]
    elif not isinstance(measured, Iterable) or getattr(measured, "ndim", None) == 0:
        return [{"quantity": name, "value": as_number(measured), "error": None}]
    return [
        {"error": None, **row, "quantity": f"{name}/{row['quantity']}".rstrip("/")}
        for row in measured
    ]


def as_number(value: Any) -> float:
    """Return a number or a tensor of one entry as a float."""
    # torch warns if a tensor still has its graph.
    return float(value.detach() if hasattr(value, "detach") else value)


def is_schedule(value: Any) -> bool:
    """Return whether a value is a schedule."""
    # The class of a schedule also has the attributes that the protocol asks for.
    return isinstance(value, Schedule) and not isinstance(value, type)
