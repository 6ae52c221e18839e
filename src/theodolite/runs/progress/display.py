"""Progress of a run, shown live on a terminal."""

import time
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from theodolite.core import Cost, printable

from ..folder.spec import Cell

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID
else:  # rich is loaded only for a display that is drawn
    Bars = TaskID = Any


@runtime_checkable
class Progress(Protocol):
    """Receives the progress of :func:`execute`; one start and finish per study."""

    def start(self, total: int, done: int, label: str) -> None:
        """Begin a study of ``total`` cells, of which ``done`` are already finished."""
        ...

    def advance(self, cell: Cell, cost: Cost) -> None:
        """Count one more finished cell."""
        ...

    def finish(self) -> None:
        """End the study, finished or not."""
        ...


class LiveProgress:
    """A bar per study: label, count, rate, time spent, time left.

    As a context it keeps the bars of several studies in one display; otherwise
    the display closes when its study finishes.

    Args:
        stream: Where to draw; standard error by default.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._bars = _display(stream)
        self._held = False
        self._task: TaskID | None = None
        self._n = 0
        self._since = 0.0

    def start(self, total: int, done: int, label: str) -> None:
        """Add a bar below those of earlier studies."""
        self._bars.start()
        self._task = self._bars.add_task(
            printable(label), total=total, completed=done, rate=""
        )
        self._n, self._since = 0, time.perf_counter()

    def advance(self, cell: Cell, cost: Cost) -> None:
        """Move the bar of the current study by one cell."""
        if self._task is None:
            return
        self._n += 1
        rate = self._n / max(time.perf_counter() - self._since, 1e-9)
        self._bars.update(self._task, advance=1, rate=f"{rate:.3g} cells/s")

    def finish(self) -> None:
        """Stop the clock of the current study; its bar stays visible."""
        if self._task is not None:
            self._bars.stop_task(self._task)
            self._task = None
        if not self._held:
            self._bars.stop()

    def __enter__(self) -> Self:
        self._held = True
        return self

    def __exit__(self, *_: object) -> None:
        """Close the display."""
        self._held = False
        self._bars.stop()


def _display(stream: IO[str] | None) -> Bars:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(),
        console=Console(file=stream, stderr=stream is None),
    )
