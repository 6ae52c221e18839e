"""Bring a run folder to the end: every cell computed once, whoever does it."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field

from theodolite.core import ConfigError, RunError
from theodolite.runs.executors.inprocess import InProcess
from theodolite.runs.executors.pool import Pool
from theodolite.runs.executors.task import Executor, Report, State, Task, Work
from theodolite.runs.folder.cells import Cell, cell_key, describe, unique
from theodolite.runs.folder.folder import RunFolder
from theodolite.runs.folder.launch import Launch
from theodolite.runs.telling.progress import Progress, QuietProgress
from theodolite.runs.telling.trackers.tracking import Tracker, Tracking

# How long to wait before asking again after a cell that another process is at.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.02, 1.0


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What one call of :func:`execute` did.

    Attributes:
        n_done_before: Cells that were finished at the start.
        n_computed: Cells computed by this call.
        n_elsewhere: Cells that another process finished in the meantime.
        n_failed: Cells that raised, or that killed their worker twice.
        failures: Message of each failed cell, by its labels as text.
        wall_s: Elapsed seconds.
        cpu_s: Processor seconds spent in the cells computed by this call.
    """

    n_done_before: int
    n_computed: int
    n_elsewhere: int
    n_failed: int
    failures: Mapping[str, str]
    wall_s: float
    cpu_s: float


@dataclass
class _Tally:
    """Counts in the making."""

    launch: Launch
    progress: Progress
    told: Callable[[Cell], None] = lambda cell: None
    n_computed: int = 0
    n_elsewhere: int = 0
    cpu_s: float = 0.0
    failures: dict[str, Report] = field(default_factory=dict)

    def add(self, cell: Cell, report: Report) -> None:
        if report.state is State.UNSAVED:
            raise RunError(report.message)
        if report.state is State.FAILED:
            self.failures[describe(cell)] = report
            self.launch.fail(describe(cell), report.message, report.trace)
            return
        if report.state is State.COMPUTED:
            self.n_computed += 1
            self.cpu_s += report.cost.cpu_s
            self.launch.count(report.cost)
            self.told(cell)
        else:
            self.n_elsewhere += 1
        self.progress.advance(cell, report.cost)


def execute(
    folder: RunFolder,
    cells: Iterable[Cell],
    work: Work,
    *,
    jobs: int | None = None,
    initialise: Callable[[], None] | None = None,
    progress: Progress | None = None,
    pool: Executor | None = None,
    label: str | None = None,
    strict: bool = True,
    trackers: Iterable[Tracker] | Tracking = (),
) -> Execution:
    """Compute the cells that are not finished, and save each as it finishes.

    Several processes may do this on one folder at once: they share the cells.

    Args:
        folder: Where finished cells are and go.
        cells: All cells of the run, finished or not.
        work: Takes a cell's labels, returns its rows; picklable unless ``jobs=0``.
        jobs: Worker processes; one per usable processor by default, 0 for none.
        initialise: Called once in each worker, or here for ``jobs=0``.
        progress: Told of every finished cell.
        pool: An executor to use in place of ``jobs`` and ``initialise``.
        label: Name in the progress display; paper and study by default.
        strict: Raise if a cell failed, once all others are finished.
        trackers: Told the rows of each cell that is computed, at the cell's place in
            ``cells``; one that fails is dropped.

    Raises:
        RunError: Cells failed, or the folder cannot be written.
    """
    cells = unique(cells)
    progress = QuietProgress() if progress is None else progress
    clock = time.perf_counter()
    todo = folder.pending(cells)
    n_before = len(cells) - len(todo)
    label = label or f"{folder.spec.paper}/{folder.spec.study}"
    spec = {"digest": folder.spec.digest, **folder.spec.to_dict()}
    with (
        _executor(jobs, initialise, pool) as executor,
        folder.launch(jobs=executor.jobs) as launch,
        Tracking.of(trackers).during(spec) as tracking,
    ):
        tally = _Tally(launch, progress, _teller(folder, cells, tracking))
        progress.start(len(cells), n_before, label)
        try:
            _drain(executor, Task(folder, work), todo, tally)
        except BaseException:
            folder.clean()  # of what workers held when they were ended
            raise
        finally:
            progress.finish()
        if tally.failures and strict:
            raise _failed(folder, cells, tally)
    return Execution(
        n_done_before=n_before,
        n_computed=tally.n_computed,
        n_elsewhere=tally.n_elsewhere,
        n_failed=len(tally.failures),
        failures={cell: report.message for cell, report in tally.failures.items()},
        wall_s=time.perf_counter() - clock,
        cpu_s=tally.cpu_s,
    )


def _teller(
    folder: RunFolder, cells: list[Cell], tracking: Tracking
) -> Callable[[Cell], None]:
    """Return what tells the trackers, if there are any, of a saved cell."""
    if not tracking:
        return lambda cell: None
    place = {cell_key(cell): step for step, cell in enumerate(cells)}
    return lambda cell: tracking.log(folder.rows([cell]), place[cell_key(cell)])


def _executor(
    jobs: int | None,
    initialise: Callable[[], None] | None,
    pool: Executor | None,
) -> AbstractContextManager[Executor]:
    if pool is not None:
        if jobs is not None or initialise is not None:
            raise ConfigError(
                "a pool comes with its own jobs and initialise: give them to the Pool"
            )
        return nullcontext(pool)
    if jobs == 0:
        return nullcontext(InProcess(initialise=initialise))
    return Pool(jobs, initialise=initialise)


def _drain(executor: Executor, task: Task, todo: list[Cell], tally: _Tally) -> None:
    """Go round until no cell is left that another process is still at."""
    wait_s = _FIRST_WAIT_S
    while todo:
        busy: list[Cell] = []
        with closing(executor.run(task, todo)) as reports:
            for cell, report in reports:
                if report.state is State.BUSY:
                    busy.append(cell)
                else:
                    tally.add(cell, report)
        todo = []
        if busy:
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        for cell in busy:
            if task.folder.done(cell):
                tally.add(cell, Report(State.FOUND))
            else:
                todo.append(cell)


def _failed(folder: RunFolder, cells: list[Cell], tally: _Tally) -> RunError:
    cell, report = next(iter(tally.failures.items()))
    n_saved = len(cells) - len(folder.pending(cells))
    return RunError(
        f"{len(tally.failures)} of {len(cells)} cells failed in {folder.path}, the "
        f"first ({cell}) with {report.message!r} (traceback in {tally.launch.name}); "
        f"{n_saved} finished cells are saved and a rerun resumes from them"
    )
