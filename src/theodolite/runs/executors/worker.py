"""A worker process: one thread, one cell at a time, gone when its parent is."""

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from theodolite.core import RunError
from theodolite.runs.executors.inprocess import one_thread_environment
from theodolite.runs.executors.task import Report
from theodolite.runs.folder.cells import Cell

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SPAWN = multiprocessing.get_context("spawn")


class Worker:
    """The parent's end of a worker process.

    Args:
        initialise: Called once in the worker before its first cell.

    Attributes:
        connection: Readable when the worker has something to tell, or is dead.
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
        self._process = _SPAWN.Process(
            target=_serve, args=(theirs, initialise, tie), daemon=True
        )
        try:
            with one_thread_environment():
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
        """Give the worker a cell; the task travels only when it is a new one."""
        self.cell = cell
        try:
            self.connection.send((None if task is self._loaded else task, dict(cell)))
        except OSError:
            return  # dead: receive() will say so
        self._loaded = task

    def receive(self) -> tuple[str, Any] | None:
        """Return what the worker tells, None if it is dead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def stop(self, *, kill: bool) -> str:
        """End the worker and return how it ended."""
        self.connection.close()  # an idle worker ends when nobody can call
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
    connection: Connection, initialise: Callable[[], None] | None, tie: bool
) -> None:
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
        return  # nobody is listening any more


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
    """Ask the kernel, where it can, and watch the parent as well."""
    if sys.platform == "linux" and tie:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def pickled(value: Any, what: str) -> bytes:
    """Pickle what workers need, or say why they cannot have it."""
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise RunError(
            f"the {what} cannot be sent to worker processes ({error}): define it at "
            "the top level of a module, or pass jobs=0"
        ) from error
