"""Cells as Ray tasks: computed on any node, saved by this process."""

import secrets
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from math import ceil
from typing import Any, Self

from theodolite.core import Cost, RunError

from ...folder.atomic import refusing
from ...folder.launch import usable_cores
from ...folder.spec import Cell
from ..task import Computed, Report, State, Task
from .capacity import Capacity, check_request
from .connection import connect, disconnect, load_ray
from .worker import Packable, WorkerFailure, WorkerSetup, compute

_POLL_S = 1.0
# One worker may die by chance; a cell that kills two has failed. Nodes leave for other
# reasons, spot instances often.
_DEATHS, _LOSSES = 2, 8


class RayCluster:
    """An executor on a Ray cluster (extra ``theodolite[ray]``).

    Cells are computed by Ray tasks with one thread each; their rows come back and
    are saved here, so nodes need not share a disk. This process holds the lock of a
    cell from before it is sent until it is saved: several drivers can share a run
    folder. A cell lost with its node is sent again; one that kills its worker twice
    fails, and the others go on.

    Args:
        address: ``host:port`` or ``ray://host:port`` of a cluster, ``auto`` for the
            one running on this machine, None for one that is started here and ends
            with :meth:`close`.
        cpus: Processors reserved for a cell.
        gpus: GPUs reserved for a cell, such as 0.25.
        initialise: Called once in each worker process.
        jobs: Largest number of cells at once; as many as fit by default.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus: float = 1,
        gpus: float = 0.0,
        initialise: Callable[[], None] | None = None,
        jobs: int | None = None,
    ) -> None:
        check_request(cpus, gpus, jobs)
        self._address, self._initialise, self._jobs = address, initialise, jobs
        self._cpus, self._gpus = cpus, gpus
        self._ray: Any = None
        self._capacity: Capacity | None = None
        self._guest = self._running = False

    @property
    def jobs(self) -> int:
        """Number of cells computed at once."""
        return self._open()[1].slots()

    def run(
        self, task: Callable[[Cell], Report], cells: Iterable[Cell]
    ) -> Generator[tuple[Cell, Report], None, None]:
        """Yield each cell with its report as it finishes; see ``Executor``."""
        if self._running:
            raise RunError("this Ray executor is at work already: make another one")
        if not isinstance(task, Task):
            raise RunError(
                f"a Ray executor was given {type(task).__name__}, which it cannot "
                "split into computing and saving: pass a Task"
            )
        ray, capacity = self._open()
        send = self._sender(ray, task)
        queue, sent = deque(cells), dict[Any, _SentCell]()
        self._running = True
        try:
            while queue or sent:
                room = capacity.in_flight()
                while queue and len(sent) < room:
                    begun = _SentCell.begin(task, cell := queue.popleft())
                    if isinstance(begun, _SentCell):
                        sent[send(cell)] = begun
                    else:
                        yield cell, begun
                for reference in _finished(ray, sent):
                    one = sent[reference]
                    report = one.save(ray, reference)
                    del sent[reference]
                    if report is None:
                        sent[send(one.cell)] = one
                    else:
                        yield one.cell, report
        finally:
            self._running = False
            for reference, one in sent.items():
                ray.cancel(reference, force=True)
                one.release()

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._ray is not None and not self._guest:
            disconnect(self._ray)
        self._ray = self._capacity = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> tuple[Any, Capacity]:
        """Connect when first needed."""
        if self._ray is None or self._capacity is None:
            ray = load_ray()
            self._guest = ray.is_initialized()
            if not self._guest:
                n_cpus = ceil(self._jobs * self._cpus) if self._jobs else usable_cores()
                ray = connect(self._address, n_cpus=n_cpus)
            elif self._address is not None:
                raise RunError(
                    "this process is connected to a Ray cluster already: leave the "
                    "address out to use that one, or call ray.shutdown() first"
                )
            self._ray = ray
            self._capacity = Capacity(
                ray, cpus=self._cpus, gpus=self._gpus, jobs=self._jobs
            )
            if not self._capacity.slots():
                refusal = self._capacity.refusal("was found")
                self.close()
                raise refusal
        return self._ray, self._capacity

    def _sender(self, ray: Any, task: Task) -> Callable[[Cell], Any]:
        """Put the run into the object store; return a function that sends cells."""
        work = task.work
        packed = work.pack() if isinstance(work, Packable) else {}
        setup = ray.put(
            WorkerSetup(
                initialise=_pickled(self._initialise, "initialise function"),
                task=_pickled(task, "work function"),
                shared={name: ray.put(value) for name, value in packed.items()},
            )
        )
        remote = ray.remote(
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_retries=0,  # what is lost is sent again from here, and counted
            max_calls=0,  # a worker keeps its libraries, with a GPU as well
            scheduling_strategy="SPREAD",
        )(compute)
        run = secrets.token_hex(8)
        return lambda cell: remote.remote(run, [setup], dict(cell))


class _SentCell:
    """A cell whose lock is held from before it is sent until it is saved.

    Make one with :meth:`begin`.
    """

    def __init__(self, task: Task, cell: Cell, hold: ExitStack) -> None:
        self.cell = cell
        self._task, self._hold = task, hold
        self._deaths = self._losses = 0

    @classmethod
    def begin(cls, task: Task, cell: Cell) -> "_SentCell | Report":
        """Lock a cell, unless it is done or another driver computes it."""
        folder, hold = task.folder, ExitStack()
        try:
            with refusing("write to", folder.path):
                mine = hold.enter_context(folder.lock(cell))
            if mine and not folder.done(cell):
                return cls(task, cell, hold)
        except RunError as error:
            hold.close()
            return Report(State.UNSAVED, message=str(error))
        hold.close()
        return Report(State.FOUND if mine else State.BUSY)

    def save(self, ray: Any, reference: Any) -> Report | None:
        """Save the result; return None if the cell must be sent again.

        Raises:
            RunError: No worker can work.
        """
        computed = self._receive(ray, reference)
        if computed is None:
            return None
        report = self._task.keep(self.cell, computed)
        self.release()
        return report

    def release(self) -> None:
        """Release the lock."""
        self._hold.close()

    def _receive(self, ray: Any, reference: Any) -> Computed | None:
        wrong = ray.exceptions
        try:
            answer = ray.get(reference)
        except (wrong.WorkerCrashedError, wrong.OutOfMemoryError):
            self._deaths += 1
            return self._give_up("worker process died", self._deaths, _DEATHS)
        except (wrong.NodeDiedError, wrong.ObjectLostError, wrong.TaskCancelledError):
            self._losses += 1
            return self._give_up("node was lost", self._losses, _LOSSES)
        except wrong.RayError as error:
            raise _cannot_work(str(error)) from error
        if not isinstance(answer, WorkerFailure):
            return answer
        self._losses += answer.lost
        if not answer.lost or self._losses >= _LOSSES:
            raise _cannot_work(answer.reason)
        return None

    def _give_up(self, what: str, times: int, enough: int) -> Computed | None:
        if times < enough:
            return None
        memory = ", often a sign that memory ran out"
        message = f"its {what} {times} times{memory}"
        return Computed(None, Cost(), message, killed_worker=True)


def _cannot_work(reason: str) -> RunError:
    """Return the error that says why no worker can start."""
    first = next(iter(reason.strip().splitlines()), "no reason given")
    return RunError(
        f"Ray workers cannot work ({first.rstrip('. ')}): install what they need on "
        "every node, with the same Python, or use the local pool"
    )


def _pickled(value: Any, what: str) -> bytes:
    """Pickle what a cluster needs, or raise an error that says why that fails."""
    from ray import cloudpickle

    try:
        return cloudpickle.dumps(value)  # pyright: ignore[reportPrivateImportUsage]
    except Exception as error:
        raise RunError(
            f"the {what} cannot be sent to a Ray cluster ({error}): define it at the "
            "top level of a module that the nodes have, or use the local pool"
        ) from error


def _finished(ray: Any, sent: dict[Any, _SentCell]) -> list[Any]:
    """Wait a while for the first result, and return all results that arrived."""
    if not sent:
        return []
    first, _ = ray.wait(list(sent), num_returns=1, timeout=_POLL_S)
    if not first:
        return []
    return ray.wait(list(sent), num_returns=len(sent), timeout=0)[0]
