"""What becomes of one cell: computed, found, busy elsewhere, failed, unsaved.

An executor carries a :class:`Task` to cells. Where it can reach the folder it
calls the task, which locks, checks, computes and saves on the spot. Where it
cannot (a cluster without a shared disk) it calls :meth:`Task.compute` far away
and :meth:`Task.keep` at home.
"""

import traceback
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from theodolite.core import Cost, Row, RunError, Stopwatch, TheodoliteError
from theodolite.runs.folder.atomic import refusing
from theodolite.runs.folder.cells import Cell, labels
from theodolite.runs.folder.folder import RunFolder

Work = Callable[[dict[str, Any]], Iterable[Row]]


class State(StrEnum):
    """What became of a cell."""

    COMPUTED = "computed"
    FOUND = "found"
    BUSY = "busy"
    FAILED = "failed"
    UNSAVED = "unsaved"


@dataclass(frozen=True)
class Report:
    """What an executor tells about a cell; small and picklable."""

    state: State
    cost: Cost = field(default_factory=Cost)
    message: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Computed:
    """Rows and cost of a cell, or the reason why there are none."""

    rows: list[Row] | None
    cost: Cost
    message: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Task:
    """One study's work, and the folder that its cells are saved in."""

    folder: RunFolder
    work: Work

    def __call__(self, cell: Cell) -> Report:
        """Compute and save a cell, unless it is done or somebody is at it."""
        try:
            with refusing("write to", self.folder.path), self.folder.lock(cell) as mine:
                if not mine:
                    return Report(State.BUSY)
                if self.folder.done(cell):
                    return Report(State.FOUND)
                return self.keep(cell, self.compute(cell))
        except RunError as error:
            return Report(State.UNSAVED, message=str(error))

    def compute(self, cell: Cell) -> Computed:
        """Do the work, wherever this is; touches no folder."""
        watch = Stopwatch()
        try:
            rows = list(self.work(labels(cell)))
        except Exception as error:
            return Computed(None, watch.read(), _reason(error), traceback.format_exc())
        return Computed(rows, watch.read())

    def keep(self, cell: Cell, computed: Computed) -> Report:
        """Save what was computed, where the folder is."""
        if computed.rows is None:
            return Report(State.FAILED, computed.cost, computed.message, computed.trace)
        try:
            self.folder.save(cell, computed.rows, computed.cost)
        except RunError as error:
            return Report(State.UNSAVED, computed.cost, str(error))
        except Exception as error:  # rows that are not plain values
            trace = traceback.format_exc()
            return Report(State.FAILED, computed.cost, _reason(error), trace)
        return Report(State.COMPUTED, computed.cost)


@runtime_checkable
class Executor(Protocol):
    """Something that carries a task to cells and reports as they finish.

    Attributes:
        jobs: How many cells are worked on at once; 0 in this process.
    """

    @property
    def jobs(self) -> int:
        """How many cells are worked on at once; 0 in this process."""
        ...

    def run(
        self, task: Callable[[Cell], Report], cells: Iterable[Cell]
    ) -> Generator[tuple[Cell, Report], None, None]:
        """Yield each cell once with its report, in any order.

        Closing the iterator abandons the cells in flight.
        """
        ...


def _reason(error: Exception) -> str:
    if isinstance(error, TheodoliteError):
        return str(error)
    return f"{type(error).__name__}: {error}"
