"""Compute one cell; its state is computed, found, busy, failed or unsaved.

An executor runs a :class:`Task` on cells. Where workers can reach the folder,
they call the task, which locks, checks, computes and saves a cell. Where they
cannot (a cluster without a shared disk), they call :meth:`Task.compute`, and the
driver calls :meth:`Task.keep`.
"""

import os
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from theodolite.core import (
    Cost,
    Exclusive,
    Row,
    RunError,
    Stopwatch,
    TheodoliteError,
    safe_point,
)

from ..folder.atomic import refusing
from ..folder.folder import RunFolder
from ..folder.spec import Cell, labels

_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)
Work = Callable[[dict[str, Any]], Iterable[Row]]


class State(StrEnum):
    """The outcome of a cell."""

    COMPUTED = "computed"
    FOUND = "found"
    BUSY = "busy"
    FAILED = "failed"
    UNSAVED = "unsaved"


@dataclass(frozen=True)
class Report:
    """What an executor reports about a cell; small and picklable."""

    state: State
    cost: Cost = field(default_factory=Cost)
    message: str = ""
    trace: str = ""
    killed_worker: bool = False


@dataclass(frozen=True)
class Computed:
    """Rows and cost of a cell, or the reason why there are none."""

    rows: list[Row] | None
    cost: Cost
    message: str = ""
    trace: str = ""
    killed_worker: bool = False


@dataclass(frozen=True)
class Task:
    """One study's work, and the folder that its cells are saved in."""

    folder: RunFolder
    work: Work

    def __call__(self, cell: Cell) -> Report:
        """Compute and save a cell, unless it is done or another process computes it."""
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
        """Compute a cell in this process; no file is written."""
        watch = Stopwatch()
        try:
            rows = list(self.work(labels(cell)))
        except (Exception, SystemExit) as error:
            return Computed(None, watch.read(), _reason(error), traceback.format_exc())
        return Computed(rows, watch.read())

    def keep(self, cell: Cell, computed: Computed) -> Report:
        """Save a computed cell; called where the folder is."""
        if computed.rows is None:
            return Report(
                State.FAILED,
                computed.cost,
                computed.message,
                computed.trace,
                computed.killed_worker,
            )
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
    """Computes cells of a task, and reports as they finish.

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


def _reason(error: BaseException) -> str:
    if isinstance(error, TheodoliteError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    return f"{type(error).__name__}: {error}"


class InProcess:
    """Run cells here, one after the other, with as many threads as a worker has.

    Sums depend on how many threads share them; with one thread the values are
    those of the pool, bit for bit.

    Args:
        initialise: Called once before the first cell, as in a worker.
    """

    jobs = 0

    def __init__(self, *, initialise: Callable[[], None] | None = None) -> None:
        self._initialise = initialise

    def run(
        self, task: Callable[[Cell], Report], cells: Iterable[Cell]
    ) -> Generator[tuple[Cell, Report], None, None]:
        """Yield each cell with its report, in order."""
        from threadpoolctl import threadpool_limits

        if self._initialise is not None:
            self._initialise()
            self._initialise = None
        # The environment is for libraries that a cell is the first to load. Once for
        # all cells: finding the libraries of a process takes milliseconds.
        with (
            Exclusive(interruptible=True),
            one_thread_environment(),
            threadpool_limits(limits=1),
        ):
            for cell in cells:
                safe_point()
                yield cell, task(cell)


@contextmanager
def one_thread_environment(**more: str) -> Iterator[None]:
    """Set one thread for libraries that load now; restore the environment.

    Args:
        more: Other variables to set meanwhile.
    """
    settings = {**dict.fromkeys(_THREADS, "1"), **more}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
