"""Compute all cells of a run folder once each, with the chosen executor."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field

from theodolite.core import ConfigError, RunError, unknown_name

from ..folder.folder import RunFolder
from ..folder.launch import Launch
from ..folder.spec import Cell, cell_key, describe, unique
from ..progress.display import Progress
from ..progress.trackers import Tracker, Tracking
from .pool import Pool
from .ray.cluster import RayCluster
from .task import Executor, InProcess, Report, State, Task, Work

EXECUTORS = ("pool", "ray")
# After this many cells in a row that kill their workers, the run ends.
_KILLERS = 3
# Seconds to wait before looking again at a cell that another process computes.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.02, 1.0


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The result of one call of :func:`execute`.

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
    """Counts while cells are computed."""

    launch: Launch
    progress: Progress | None
    log: Callable[[Cell], None] | None = None
    n_computed: int = 0
    n_elsewhere: int = 0
    cpu_s: float = 0.0
    failures: dict[str, Report] = field(default_factory=dict)
    killers_in_a_row: int = 0

    def add(self, cell: Cell, report: Report) -> None:
        if report.state is State.UNSAVED:
            raise RunError(report.message)
        killed = report.killed_worker
        self.killers_in_a_row = self.killers_in_a_row + 1 if killed else 0
        if report.state is State.FAILED:
            self.failures[describe(cell)] = report
            self.launch.fail(describe(cell), report.message, report.trace)
            if self.killers_in_a_row == _KILLERS:
                raise RunError(
                    f"{_KILLERS} cells in a row killed their workers, the last "
                    f"({describe(cell)}): {report.message}; the others were left, "
                    "finished cells are saved and a rerun resumes from them"
                )
            return
        if report.state is State.COMPUTED:
            self.n_computed += 1
            self.cpu_s += report.cost.cpu_s
            self.launch.count(report.cost)
            if self.log:
                self.log(cell)
        else:
            self.n_elsewhere += 1
        if self.progress:
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
        folder: Folder that holds finished cells and gets new ones.
        cells: All cells of the run, finished or not.
        work: Takes a cell's labels, returns its rows; picklable unless ``jobs=0``.
        jobs: Worker processes; one per usable processor by default, 0 for none.
        initialise: Called once in each worker, or here for ``jobs=0``.
        progress: Shows every finished cell.
        pool: An executor to use in place of ``jobs`` and ``initialise``.
        label: Name in the progress display; paper and study by default.
        strict: Raise if a cell failed, once all others are finished.
        trackers: Get the rows of each cell that is computed, with its place in
            ``cells`` as the step; a tracker that fails is dropped.

    Raises:
        RunError: Cells failed, or the folder cannot be written.
    """
    cells = unique(cells)
    clock = time.perf_counter()
    todo = folder.pending(cells)
    n_before = len(cells) - len(todo)
    label = label or f"{folder.spec.paper}/{folder.spec.study}"
    tracking = Tracking.of(trackers) if trackers else None
    with (
        _executor(jobs, initialise, pool) as executor,
        folder.launch(jobs=executor.jobs) as launch,
        tracking.during(folder.spec.record) if tracking else nullcontext(),
    ):
        tally = _Tally(launch, progress)
        if tracking:
            tally.log = _logger(folder, cells, tracking)
        if progress:
            progress.start(len(cells), n_before, label)
        try:
            _drain(executor, Task(folder, work), todo, tally)
        except BaseException:
            folder.clean()  # locks and part files of workers that were killed
            raise
        finally:
            if progress:
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


def _logger(
    folder: RunFolder, cells: list[Cell], tracking: Tracking
) -> Callable[[Cell], None]:
    """Return a function that logs a saved cell to the trackers."""
    place = {cell_key(cell): step for step, cell in enumerate(cells)}
    return lambda cell: tracking.log(folder.rows([cell]), place[cell_key(cell)])


def _executor(
    jobs: int | None, initialise: Callable[[], None] | None, pool: Executor | None
) -> AbstractContextManager[Executor]:
    if pool is not None:
        if jobs is not None or initialise is not None:
            raise ConfigError(
                "a pool comes with its own jobs and initialise: give them to the Pool"
            )
        return nullcontext(pool)
    return executor_for("pool", jobs=jobs, initialise=initialise)


def _drain(executor: Executor, task: Task, todo: list[Cell], tally: _Tally) -> None:
    """Compute cells until none is left, also none that another process computes."""
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


def check_executor(
    name: str, *, jobs: int | None, address: str | None, gpus: float | None
) -> None:
    """Raise if the executor of that name does not have a setting.

    Args:
        name: ``pool`` or ``ray``.
        jobs: Cells at once; 0 for this process.
        address: Address of a Ray cluster.
        gpus: GPUs per cell on Ray.

    Raises:
        ConfigError: With the command line's names of the settings.
    """
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    if name == "pool" and (address is not None or gpus is not None):
        given = "--address" if address is not None else "--gpus"
        raise ConfigError(
            f"{given} was given and the executor is the local pool: add --executor "
            "ray, or leave it out"
        )
    if name == "ray" and jobs == 0:
        raise ConfigError(
            "--jobs 0 works in this process, which Ray cannot: leave out --jobs or "
            "--executor ray"
        )


def executor_for(
    name: str,
    *,
    jobs: int | None = None,
    address: str | None = None,
    gpus: float | None = None,
    device: str | None = None,
    initialise: Callable[[], None] | None = None,
) -> AbstractContextManager[Executor]:
    """Return the executor of a name, as a context manager.

    Args:
        name: ``pool`` or ``ray``.
        jobs: Cells at once; as many as fit by default, 0 for this process.
        address: Address of a Ray cluster; one is started here by default.
        gpus: GPUs per cell on Ray; by default one where the device is CUDA.
        device: Where cells compute.
        initialise: Called once in each worker.

    Example:
        >>> with executor_for("pool", jobs=0) as executor:
        ...     executor.jobs
        0
    """
    check_executor(name, jobs=jobs, address=address, gpus=gpus)
    if name == "ray":
        # Ray hides the GPUs that a task does not ask for.
        wanted = 1.0 if (device or "").startswith("cuda") else 0.0
        return RayCluster(
            address,
            gpus=wanted if gpus is None else gpus,
            initialise=initialise,
            jobs=jobs,
        )
    if jobs == 0:
        return nullcontext(InProcess(initialise=initialise))
    return Pool(jobs, initialise=initialise)
