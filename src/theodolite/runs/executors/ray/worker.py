"""The code of a Ray worker process: set up once, then compute cells."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...folder.spec import Cell
from ..task import Computed, Task, one_thread_environment


@runtime_checkable
class Packable(Protocol):
    """Work that needs more than a cell's labels, such as a dataset.

    Packed values are sent once to each node, through the object store.
    """

    def pack(self) -> Mapping[str, Any]:
        """Return the values to send, by name; called once, by the driver."""
        ...

    def unpack(self, fetch: Callable[[str], Any]) -> None:
        """Prepare the work in a worker; ``fetch(name)`` returns a packed value."""
        ...


@dataclass(frozen=True)
class WorkerSetup:
    """Data of a run that a worker needs before its first cell.

    Attributes:
        initialise: The pickled function that prepares a process, or None.
        task: The pickled task.
        shared: References to the packed values of the work.
    """

    initialise: bytes
    task: bytes
    shared: Mapping[str, Any]


@dataclass(frozen=True)
class WorkerFailure:
    """Why a worker cannot compute any cell.

    Attributes:
        reason: What went wrong.
        lost: Whether data did not reach the worker, so that a retry may succeed.
    """

    reason: str
    lost: bool = False


_prepared: set[str] = set()
_current: dict[str, Task] = {}


def compute(run: str, setup: list[Any], cell: Cell) -> Computed | WorkerFailure:
    """Compute one cell of a run, with one thread; see ``Task.compute``.

    Args:
        run: Name of the run, new for each setup.
        setup: Reference to the :class:`WorkerSetup`, in a list so that it is fetched
            once per process and not once per cell.
        cell: Labels.
    """
    from threadpoolctl import threadpool_limits

    with one_thread_environment():
        try:
            task = _current.get(run) or _open(run, setup)
        except Exception as error:
            lost = type(error).__module__.startswith("ray.")
            return WorkerFailure(f"{type(error).__name__}: {error}", lost)
        with threadpool_limits(limits=1):
            return task.compute(cell)


def _open(run: str, setup: list[Any]) -> Task:
    import ray
    from ray import cloudpickle

    sent: WorkerSetup = ray.get(setup[0])
    _prepare(sent.initialise, cloudpickle.loads)
    task: Task = cloudpickle.loads(sent.task)
    if isinstance(task.work, Packable):
        task.work.unpack(lambda name: ray.get(sent.shared[name]))
    _current.clear()
    _current[run] = task
    return task


def _prepare(initialise: bytes, loads: Callable[[bytes], Any]) -> None:
    """Call an initialise function once per process, for all its runs."""
    name = hashlib.sha256(initialise).hexdigest()
    if name not in _prepared:
        function = loads(initialise)
        if function is not None:
            function()
        _prepared.add(name)
