"""Cells as Ray tasks: computed on any node, saved at home."""

import secrets
from collections import deque
from collections.abc import Callable, Generator, Iterable
from math import ceil
from types import TracebackType
from typing import Any, Self

from theodolite.core import RunError
from theodolite.runs.executors.ray.capacity import Capacity, check_caller, check_request
from theodolite.runs.executors.ray.connection import connect, disconnect, load_ray
from theodolite.runs.executors.ray.crew import Crew
from theodolite.runs.executors.ray.flight import Flight
from theodolite.runs.executors.ray.sending import pickled
from theodolite.runs.executors.ray.worker import Parcel, Travelling, compute
from theodolite.runs.executors.task import Report, Task
from theodolite.runs.folder.cells import Cell
from theodolite.runs.folder.origin import usable_cores

_POLL_S = 1.0


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
        jobs: At most so many cells at once; as many as fit by default.
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
        check_caller(address, initialise)
        check_request(cpus, gpus, jobs)
        self._address, self._initialise, self._jobs = address, initialise, jobs
        self._cpus, self._gpus = cpus, gpus
        self._ray: Any = None
        self._capacity: Capacity | None = None
        self._crews: dict[bytes, Crew] = {}
        self._guest = self._running = False

    @property
    def jobs(self) -> int:
        """How many cells are worked on at once."""
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
        self.dismiss()
        send = self._sender(ray, task)
        queue, flights = deque(cells), dict[Any, Flight]()
        self._running = True
        try:
            while queue or flights:
                room = capacity.in_flight()
                while queue and len(flights) < room:
                    begun = Flight.begin(task, cell := queue.popleft())
                    if isinstance(begun, Flight):
                        flights[send(cell)] = begun
                    else:
                        yield cell, begun
                for reference in _landed(ray, flights):
                    flight = flights[reference]
                    report = flight.land(ray, reference)
                    del flights[reference]
                    if report is None:
                        flights[send(flight.cell)] = flight
                    else:
                        yield flight.cell, report
        finally:
            self._running = False
            for reference, flight in flights.items():
                ray.cancel(reference, force=True)
                flight.release()

    def crew(self, begin: Callable[..., Any]) -> Crew:
        """Return members that work together on all places of the cluster.

        They keep their places until :meth:`close`, or until cells are run.

        Args:
            begin: Called with its :class:`Seat` in each member; returns what it holds.
        """
        ray, capacity = self._open()
        key = pickled(begin, "function that begins")
        if key not in self._crews:
            self._crews[key] = Crew(
                ray,
                capacity,
                begin=key,
                initialise=pickled(self._initialise, "initialise function"),
                cpus=self._cpus,
                gpus=self._gpus,
            )
        return self._crews[key]

    def close(self) -> None:
        """Leave the cluster; one that was started here ends, and crews with it."""
        for crew in self._crews.values():
            crew.close()
        self._crews.clear()
        if self._ray is not None and not self._guest:
            disconnect(self._ray)
        self._ray = self._capacity = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def dismiss(self) -> None:
        """Free the places that crews hold; they are gathered anew when asked."""
        for crew in self._crews.values():
            crew.dismiss()

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
        """Put what a run needs into the object store; return what sends a cell."""
        work = task.work
        packed = work.pack() if isinstance(work, Travelling) else {}
        parcel = ray.put(
            Parcel(
                initialise=pickled(self._initialise, "initialise function"),
                task=pickled(task, "work function"),
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
        return lambda cell: remote.remote(run, [parcel], dict(cell))


def _landed(ray: Any, flights: dict[Any, Flight]) -> list[Any]:
    """Wait a while for the first, and return all that are back."""
    if not flights:
        return []
    first, _ = ray.wait(list(flights), num_returns=1, timeout=_POLL_S)
    if not first:
        return []
    return ray.wait(list(flights), num_returns=len(flights), timeout=0)[0]
