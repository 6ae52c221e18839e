"""A local pool of worker processes that several studies can share."""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Self

from theodolite.core import ConfigError, RunError
from theodolite.runs.executors.task import Report, State
from theodolite.runs.executors.worker import Worker, pickled
from theodolite.runs.folder.cells import Cell, cell_key
from theodolite.runs.folder.origin import usable_cores

# A worker that dies may be a chance victim; a cell that kills two is not.
_DEATHS = 2
_FALSE_STARTS = 3


class Pool:
    """Workers, started when first needed and kept until :meth:`close`.

    A worker that dies takes its own cell with it and no other: the cell is tried
    once more in a new worker. Each worker has its own line to the parent, so it is
    always known whose death it was.

    Args:
        jobs: Number of workers; one per usable processor by default.
        initialise: Called once in each worker, such as to limit torch's threads.
    """

    def __init__(
        self, jobs: int | None = None, *, initialise: Callable[[], None] | None = None
    ) -> None:
        jobs = usable_cores() if jobs is None else jobs
        if jobs < 1:
            raise ConfigError(f"a pool of {jobs} workers was asked for: try 1 or more")
        if initialise is not None:
            pickled(initialise, "initialise function")
        self.jobs = jobs
        self._initialise = initialise
        self._workers: list[Worker] = []
        self._false_starts = 0
        self._running = False

    def run(
        self, task: Callable[[Cell], Report], cells: Iterable[Cell]
    ) -> Generator[tuple[Cell, Report], None, None]:
        """Yield each cell with its report as it finishes; see ``Executor``."""
        if self._running:
            raise RunError("this pool is at work already: make another one")
        blob = pickled(task, "work function")
        queue = deque(cells)
        deaths: Counter[str] = Counter()
        self._running = True
        try:
            while queue or self._busy():
                self._staff(len(queue) + len(self._busy()))
                self._assign(queue, blob)
                for worker in self._talking():
                    cell, message = worker.cell, worker.receive()
                    if message is not None:
                        report = self._understand(worker, message)
                    else:
                        ending = self._bury(worker)
                        report = self._mourn(cell, ending, deaths, queue)
                    if cell is not None and report is not None:
                        yield cell, report
        finally:
            self._running = False
            for worker in self._busy():
                self._drop(worker, kill=True)

    def close(self) -> None:
        """End the workers; the pool starts new ones if it is used again."""
        for worker in list(self._workers):
            self._drop(worker, kill=not worker.ready or worker.cell is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.cell is not None]

    def _staff(self, n_cells: int) -> None:
        while len(self._workers) < min(self.jobs, n_cells):
            self._workers.append(Worker(self._initialise))

    def _assign(self, queue: deque[Cell], blob: bytes) -> None:
        for worker in self._workers:
            if queue and worker.ready and worker.cell is None:
                worker.send(blob, queue.popleft())

    def _talking(self) -> list[Worker]:
        lines = wait([worker.connection for worker in self._workers])
        return [worker for worker in self._workers if worker.connection in lines]

    def _understand(self, worker: Worker, message: tuple[str, Any]) -> Report | None:
        kind, content = message
        if kind == "report":
            worker.cell = None
            return content
        if kind == "broken":
            self._drop(worker, kill=False)
            raise RunError(
                f"worker processes cannot start ({content}): put what they need at "
                "the top level of an importable module, or pass jobs=0"
            )
        worker.ready = True
        self._false_starts = 0
        return None

    def _bury(self, worker: Worker) -> str:
        """Forget a dead worker; give up if workers die before they can work."""
        ending = self._drop(worker, kill=False)
        self._false_starts += not worker.ready
        if self._false_starts >= _FALSE_STARTS:
            self._false_starts = 0
            raise RunError(
                f"worker processes cannot start (the last one {ending}): guard the "
                'script with if __name__ == "__main__", or pass jobs=0'
            )
        return ending

    def _mourn(
        self, cell: Cell | None, ending: str, deaths: Counter[str], queue: deque[Cell]
    ) -> Report | None:
        """Put a dead worker's cell back in the queue, or report it as failed."""
        if cell is None:
            return None
        deaths[cell_key(cell)] += 1
        if deaths[cell_key(cell)] < _DEATHS:
            queue.append(cell)
            return None
        return Report(
            State.FAILED, message=f"its worker process {ending}, {_DEATHS} times"
        )

    def _drop(self, worker: Worker, *, kill: bool) -> str:
        self._workers.remove(worker)
        return worker.stop(kill=kill)
