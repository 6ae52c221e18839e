"""A local pool of worker processes; each computes one cell at a time, on one thread."""

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from importlib import import_module
from io import BytesIO
from multiprocessing.connection import Connection, wait
from types import FunctionType
from typing import Any, Self

from theodolite.core import ConfigError, RunError

from ..folder.launch import usable_cores
from ..folder.spec import Cell, cell_key
from .task import Report, State, one_thread_environment

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SAFE_PATH = "PYTHONSAFEPATH"
_SPAWN = multiprocessing.get_context("spawn")
# One dead worker may be bad luck; a cell whose worker dies twice has failed.
_DEATHS = 2
_FAILED_STARTS = 3


class Worker:
    """The parent's end of a worker process.

    Args:
        initialise: Called once in the worker before its first cell.

    Attributes:
        connection: Readable when the worker has sent something, or is dead.
        ready: Whether the worker has started up.
        cell: The cell in flight.
    """

    def __init__(self, initialise: Callable[[], None] | None) -> None:
        self.connection, theirs = _SPAWN.Pipe()
        self.ready = False
        self.cell: Cell | None = None
        self._loaded: bytes | None = None
        # The kernel ties a worker to the thread that started it, not the process.
        tie = threading.current_thread() is threading.main_thread()
        path = os.environ.get(_SAFE_PATH)
        self._process = _SPAWN.Process(
            target=_serve, args=(theirs, initialise, tie, path), daemon=True
        )
        try:
            # Python would look for standard modules in the working directory first.
            with one_thread_environment(**{_SAFE_PATH: "1"}):
                self._process.start()
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int | None:
        """Process number of the worker."""
        return self._process.pid

    def send(self, task: bytes, cell: Cell) -> None:
        """Send the worker a cell, and the task only when it is a new one."""
        self.cell = cell
        try:
            self.connection.send((None if task is self._loaded else task, dict(cell)))
        except OSError:
            return  # dead: receive() will say so
        self._loaded = task

    def receive(self) -> tuple[str, Any] | None:
        """Return the worker's message, None if the worker is dead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def stop(self, *, kill: bool) -> str:
        """End the worker and return how it ended."""
        self.connection.close()  # an idle worker exits when the connection closes
        if kill:
            self._process.kill()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        ending = _ending(self._process.exitcode or 0)
        self._process.close()
        return ending


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    known = {int(member): member.name for member in signal.Signals}
    name = known.get(-code, f"signal {-code}")
    memory = ", often a sign that memory ran out" if name == "SIGKILL" else ""
    return f"was killed by {name}{memory}"


def _serve(
    connection: Connection,
    initialise: Callable[[], None] | None,
    tie: bool,
    safe_path: str | None,
) -> None:
    if safe_path is None:  # processes that a cell starts are its own affair
        os.environ.pop(_SAFE_PATH, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _end_with_parent(tie)
    try:
        if initialise is not None:
            initialise()
    except Exception as error:
        connection.send(("broken", f"initialise raised {_named(error)}"))
        return
    try:
        connection.send(("ready", None))
        _work(connection)
    except (EOFError, OSError):
        return  # the parent has closed the connection


def _work(connection: Connection) -> None:
    task: Callable[[Cell], Report] | None = None
    while True:
        blob, cell = connection.recv()
        try:
            task = task if blob is None else pickle.loads(blob)
        except Exception as error:
            reason = f"the work function cannot be loaded there, {_named(error)}"
            connection.send(("broken", reason))
            return
        assert task is not None
        connection.send(("report", task(cell)))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _end_with_parent(tie: bool) -> None:
    """End this worker when its parent ends."""
    if sys.platform == "linux" and tie:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Pickler(pickle.Pickler):
    """Pickle with public functions of the library by name, without their check."""

    def reducer_override(self, value: Any) -> Any:
        checked = isinstance(value, FunctionType) and hasattr(value, "__checked__")
        if not checked or value.__name__ == "__init__":
            return NotImplemented
        return _public, (value.__module__, value.__name__)


def _public(package: str, name: str) -> Any:
    return getattr(import_module(package), name)


def pickled(value: Any, what: str) -> bytes:
    """Pickle a value for the workers, or explain why that is impossible."""
    try:
        content = BytesIO()
        _Pickler(content).dump(value)
        return content.getvalue()
    except Exception as error:
        raise RunError(
            f"the {what} cannot be sent to worker processes ({error}): define it at "
            "the top level of a module, or pass jobs=0"
        ) from error


class Pool:
    """Workers, started when first needed and kept until :meth:`close`.

    A worker that dies takes its own cell with it and no other: the cell is tried
    once more in a new worker. Each worker has its own connection, so that the pool
    knows which one died.

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
        self._failed_starts = 0
        self._running = False

    def run(
        self, task: Callable[[Cell], Report], cells: Iterable[Cell]
    ) -> Generator[tuple[Cell, Report], None, None]:
        """Yield each cell with its report as it finishes; see ``Executor``."""
        if self._running:
            raise RunError("this pool is already running: make another one")
        blob = pickled(task, "work function")
        queue = deque(cells)
        deaths: Counter[str] = Counter()
        self._running = True
        try:
            while queue or self._busy():
                self._start_workers(len(queue) + len(self._busy()))
                self._assign(queue, blob)
                for worker in self._readable():
                    cell, message = worker.cell, worker.receive()
                    if message is not None:
                        report = self._handle(worker, message)
                    else:
                        ending = self._remove_dead(worker)
                        report = self._retry_or_fail(cell, ending, deaths, queue)
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.cell is not None]

    def _start_workers(self, n_cells: int) -> None:
        while len(self._workers) < min(self.jobs, n_cells):
            self._workers.append(Worker(self._initialise))

    def _assign(self, queue: deque[Cell], blob: bytes) -> None:
        for worker in self._workers:
            if queue and worker.ready and worker.cell is None:
                worker.send(blob, queue.popleft())

    def _readable(self) -> list[Worker]:
        lines = wait([worker.connection for worker in self._workers])
        return [worker for worker in self._workers if worker.connection in lines]

    def _handle(self, worker: Worker, message: tuple[str, Any]) -> Report | None:
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
        self._failed_starts = 0
        return None

    def _remove_dead(self, worker: Worker) -> str:
        """Forget a dead worker; give up if workers die before they can work."""
        ending = self._drop(worker, kill=False)
        self._failed_starts += not worker.ready
        if self._failed_starts >= _FAILED_STARTS:
            self._failed_starts = 0
            raise RunError(
                f"worker processes cannot start (the last one {ending}): guard the "
                'script with if __name__ == "__main__", or pass jobs=0'
            )
        return ending

    def _retry_or_fail(
        self, cell: Cell | None, ending: str, deaths: Counter[str], queue: deque[Cell]
    ) -> Report | None:
        """Put a dead worker's cell back in the queue, or report it as failed."""
        if cell is None:
            return None
        deaths[cell_key(cell)] += 1
        if deaths[cell_key(cell)] < _DEATHS:
            queue.appendleft(cell)
            return None
        message = f"its worker process {ending}, {_DEATHS} times"
        return Report(State.FAILED, message=message, killed_worker=True)

    def _drop(self, worker: Worker, *, kill: bool) -> str:
        self._workers.remove(worker)
        return worker.stop(kill=kill)
