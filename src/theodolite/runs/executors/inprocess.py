"""One thread a cell: in the environment of workers, and in this process."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager

from theodolite.runs.executors.task import Report
from theodolite.runs.folder.cells import Cell

_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


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
        with one_thread_environment(), threadpool_limits(limits=1):
            for cell in cells:
                yield cell, task(cell)


@contextmanager
def one_thread_environment() -> Iterator[None]:
    """Ask libraries that start now for one thread; put the environment back."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
