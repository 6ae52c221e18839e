"""One cell on its way: locked here, computed far away, saved here."""

from contextlib import ExitStack
from typing import Any

from theodolite.core import Cost, RunError
from theodolite.runs.executors.ray.worker import Broken
from theodolite.runs.executors.task import Computed, Report, State, Task
from theodolite.runs.folder.atomic import refusing
from theodolite.runs.folder.cells import Cell

# A worker that dies may be a chance victim; a cell that kills two is not. Nodes go
# for reasons of their own, spot instances often.
_DEATHS, _LOSSES = 2, 8


class Flight:
    """A cell whose lock is held from before it is sent until it is saved.

    Make one with :meth:`begin`.
    """

    def __init__(self, task: Task, cell: Cell, hold: ExitStack) -> None:
        self.cell = cell
        self._task, self._hold = task, hold
        self._deaths = self._losses = 0

    @classmethod
    def begin(cls, task: Task, cell: Cell) -> "Flight | Report":
        """Lock a cell, unless it is done or somebody is at it."""
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

    def land(self, ray: Any, reference: Any) -> Report | None:
        """Save what came back; None if the cell must be sent again.

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
        """Give the lock back."""
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
            raise cannot_work(str(error)) from error
        if not isinstance(answer, Broken):
            return answer
        self._losses += answer.lost
        if not answer.lost or self._losses >= _LOSSES:
            raise cannot_work(answer.reason)
        return None

    def _give_up(self, what: str, times: int, enough: int) -> Computed | None:
        if times < enough:
            return None
        memory = ", often a sign that memory ran out"
        return Computed(None, Cost(), f"its {what} {times} times{memory}")


def cannot_work(reason: str) -> RunError:
    """Say why no worker can get ready."""
    first = next(iter(reason.strip().splitlines()), "no reason given")
    return RunError(
        f"Ray workers cannot work ({first.rstrip('. ')}): install what they need on "
        "every node, with the same Python, or use the local pool"
    )
