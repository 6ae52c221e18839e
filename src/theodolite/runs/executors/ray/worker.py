"""What a Ray worker process does: it gets ready once, then computes cells."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from theodolite.runs.executors.inprocess import one_thread_environment
from theodolite.runs.executors.task import Computed, Task
from theodolite.runs.folder.cells import Cell


@runtime_checkable
class Travelling(Protocol):
    """Work that needs more than a cell's labels, such as a dataset.

    What it packs travels once to each node, through the object store.
    """

    def pack(self) -> Mapping[str, Any]:
        """Return what may have to travel, by name; called once, at home."""
        ...

    def unpack(self, fetch: Callable[[str], Any]) -> None:
        """Get ready in a worker; ``fetch`` what is not there under its name."""
        ...


@dataclass(frozen=True)
class Parcel:
    """All that a worker needs of a run before its first cell.

    Attributes:
        initialise: The pickled function that prepares a process, or None.
        task: The pickled task.
        shared: References to what the work has packed.
    """

    initialise: bytes
    task: bytes
    shared: Mapping[str, Any]


@dataclass(frozen=True)
class Broken:
    """Why a worker cannot work at all.

    Attributes:
        reason: What went wrong.
        lost: Whether something did not reach it, so that another try may do.
    """

    reason: str
    lost: bool = False


_prepared: set[str] = set()
_current: dict[str, Task] = {}


def compute(run: str, parcel: list[Any], cell: Cell) -> Computed | Broken:
    """Compute one cell of a run, with one thread; see ``Task.compute``.

    Args:
        run: Name of the run, new for each parcel.
        parcel: Reference to the :class:`Parcel`, in a list so that it is fetched
            once a process and not once a cell.
        cell: Labels.
    """
    from threadpoolctl import threadpool_limits

    with one_thread_environment():
        try:
            task = _current.get(run) or _open(run, parcel)
        except Exception as error:
            lost = type(error).__module__.startswith("ray.")
            return Broken(f"{type(error).__name__}: {error}", lost)
        with threadpool_limits(limits=1):
            return task.compute(cell)


def _open(run: str, parcel: list[Any]) -> Task:
    import ray
    from ray import cloudpickle

    sent: Parcel = ray.get(parcel[0])
    _prepare(sent.initialise, cloudpickle.loads)
    task: Task = cloudpickle.loads(sent.task)
    if isinstance(task.work, Travelling):
        task.work.unpack(lambda name: ray.get(sent.shared[name]))
    _current.clear()
    _current[run] = task
    return task


def _prepare(initialise: bytes, loads: Callable[[bytes], Any]) -> None:
    """Call an initialise function once a process, however many runs it serves."""
    name = hashlib.sha256(initialise).hexdigest()
    if name not in _prepared:
        function = loads(initialise)
        if function is not None:
            function()
        _prepared.add(name)
