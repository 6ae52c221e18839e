"""Train every point of a grid, crash-safe, in this process, a pool or a cluster."""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from theodolite.core import (
    ConfigError,
    Cost,
    DataError,
    Rows,
    RunError,
    ShortcutBlueprint,
    to_strict_json,
)
from theodolite.instruments import counted, show_progress
from theodolite.runs import (
    Executor,
    InProcess,
    Pool,
    Progress,
    RunFolder,
    RunSpec,
    Tracker,
    Tracking,
    execute,
    runs_in,
)

from ..loop.loop import DIVERGENCE, check_record, check_steps
from ..probes.probe import Probe, ProbeWarning, check_probes, warn
from ..probes.schedules import Schedule
from .axes import expand
from .pieces import QUANTITIES, Job, train_piece
from .probe_digest import probe_digest
from .result import Grid


class _PieceProgress:
    """Default progress of :func:`train_grid`: counts pieces as products are counted."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def start(self, total: int, done: int, label: str) -> None:
        """Begin to count."""
        self._stack.enter_context(
            show_progress("train_grid", unit="pieces", total=total)
        )
        counted(done, unit="pieces")

    def advance(self, cell: Any, cost: Cost) -> None:
        """Count one more finished piece."""
        counted(unit="pieces")

    def finish(self) -> None:
        """Remove the progress line."""
        self._stack.close()


# Starting a worker costs about as much as this much training.
_WORTH_A_POOL_S = 5.0
_NAMES = ("training", "grid")


class GridWarning(UserWarning):
    """A problem of a grid that did not stop its training."""


def train_grid(
    blueprint: ShortcutBlueprint | Mapping[str, ShortcutBlueprint],
    data: tuple[Any, Any],
    axes: Mapping[str, Iterable[Any]],
    *,
    steps: int,
    probes: Iterable[Probe] = (),
    drops: Mapping[int, float] | None = None,
    record: Schedule | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    device: str = "cpu",
    strategy: str = "auto",
    divergence: float = DIVERGENCE,
    folder: Path | str | None = None,
    jobs: int | None = None,
    pool: Executor | None = None,
    progress: Progress | None = None,
    trackers: Tracking | Iterable[Tracker] = (),
) -> Grid:
    r"""Train a network for every combination of the axes by full-batch descent.

    The loss is the half mean square. A point that diverges is retired and recorded
    with its step. Killed half-way, a grid with a folder resumes.

    Args:
        blueprint: What the points have in common, or several networks by name, which
            are then the axis ``network``.
        data: Inputs and targets, shape (samples, width) each.
        axes: ``lr`` and any of ``seed``, ``momentum``, ``weight_decay`` and the
            blueprint's fields, each with its values.
        steps: Updates of each point.
        probes: Measurements on a schedule, on every point.
        drops: Step to factor on the rate from then on.
        record: Which losses along the way to keep; only the last by default.
        dtype: Precision of the training.
        device: ``cpu`` or a CUDA device.
        strategy: ``auto``, or one of moments, fused, stacked, plain.
        divergence: A point is retired once its loss is not finite or above this
            multiple of its first.
        folder: Where results go and are resumed from; one grid per folder.
        jobs: Worker processes; by default none for a grid of seconds and one per core
            for more. 0 trains in this process.
        pool: An executor in place of ``jobs``, such as a ``RayCluster``.
        progress: Called for every finished piece; see ``instruments.progress`` for the
            default.
        trackers: Receive every finished row, such as a ``TensorBoardTracker``.

    Example:
        >>> x = np.eye(3)
        >>> plan = ShortcutBlueprint(width=3, depth=4)
        >>> grid = train_grid(plan, (x, x[::-1]), {"seed": [0, 1], "lr": [0.1, 0.5]},
        ...                   steps=200)
        >>> grid.shape, bool((grid.final_loss[:, 1] < grid.final_loss[:, 0]).all())
        ((2, 2), True)
    """
    check_steps(steps, divergence)
    check_record(record)
    if pool is not None and jobs is not None:
        raise ConfigError(
            f"jobs={jobs} and a pool were given: a pool has its own number of workers; "
            "leave one of them out"
        )
    drops = dict(drops or {})
    checked, points = expand(blueprint, axes, drops=drops)
    job = Job(
        blueprint=blueprint,
        axes=checked,
        drops=drops,
        data=_arrays(data, dtype),
        steps=int(steps),
        probes=_probes(probes),
        record=record,
        divergence=divergence,
        dtype=dtype,
        device=str(device),
        strategy=strategy,
    )
    vars(job)["points"] = points  # expanded already
    _check_fit(job)
    pieces = [{"piece": number} for number in range(len(job.pieces))]
    with ExitStack() as stack:
        temporary = folder is None
        root = (
            stack.enter_context(tempfile.TemporaryDirectory()) if temporary else folder
        )
        run = _run_folder(root, job)
        executor = pool or _executor(job, jobs, stack)
        done = execute(
            run,
            pieces,
            partial(train_piece, job),
            pool=executor,
            progress=_PieceProgress() if progress is None else progress,
            trackers=trackers,
            strict=not temporary,
        )
        if done.failures:
            raise RunError(
                f"{len(done.failures)} of {len(pieces)} pieces of the grid failed, the "
                f"first with {next(iter(done.failures.values()))!r}: pass a folder to "
                "keep what finishes"
            )
        rows, cost = run.collected(pieces)
    lost, failed = list(_lost_rates(rows)), list(_failed_probes(rows))
    for note in lost:
        warn(note, GridWarning)
    for note in failed:
        warn(note, ProbeWarning)
    notes = (*lost, *failed)
    return Grid(checked, rows, steps, cost, None if temporary else run.path, notes)


def use_one_thread() -> None:
    """Make a worker compute with one thread."""
    import torch

    torch.set_num_threads(1)


def _executor(job: Job, jobs: int | None, stack: ExitStack) -> Executor:
    here = jobs == 0 or job.device != "cpu"
    if here or (jobs is None and job.seconds < _WORTH_A_POOL_S):
        return InProcess()
    return stack.enter_context(Pool(jobs, initialise=use_one_thread))


def _probes(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Return probes whose names differ from those of the grid's rows."""
    checked = check_probes(probes)
    if taken := [probe.name for probe in checked if probe.name in QUANTITIES]:
        raise ConfigError(
            f"a probe is named {taken[0]!r}, as are rows of the grid's own: give it "
            f"another name than {', '.join(QUANTITIES)}"
        )
    return checked


def _arrays(data: tuple[Any, Any], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets in float64, finite also in the training's precision."""

    def real(part: Any) -> np.ndarray:
        part = part.detach().cpu().numpy() if hasattr(part, "detach") else part
        if np.iscomplexobj(part):
            raise TypeError("they are complex")
        return np.ascontiguousarray(part, dtype=np.float64)

    try:
        x, y = (real(part) for part in data)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the data is not a pair of arrays ({error}): pass (inputs, targets)"
        ) from error
    if x.ndim != 2 or x.shape != y.shape or not len(x):
        raise DataError(
            f"inputs of shape {x.shape} and targets of shape {y.shape}: pass both as "
            "(samples, width), targets one-hot"
        )
    for name, part in (("inputs", x), ("targets", y)):
        with np.errstate(over="ignore"):
            finite = np.isfinite(part.astype(dtype, copy=False))
        if not finite.all():
            raise DataError(
                f"{int((~finite).sum())} of the {part.size} numbers of the {name} are "
                f"NaN or infinite in {dtype}: clean the data first"
            )
    return x, y


def _check_fit(job: Job) -> None:
    """Refuse data of another width than a network's, and a missing device."""
    width = job.data[0].shape[1]
    for _, numbers in job.pieces:  # of one shape each
        wanted = job.points[numbers[0]].blueprint.width
        if wanted != width:
            raise ConfigError(
                f"data of width {width} for a network of width {wanted}: "
                "whiten the data to that width, or change the blueprint"
            )
    if job.device != "cpu":
        import torch

        if not (job.device.startswith("cuda") and torch.cuda.is_available()):
            raise ConfigError(f"device {job.device!r} is not there: try 'cpu'")


def _run_folder(root: Path | str, job: Job) -> RunFolder:
    """Return the folder of a grid; refuse one that holds another grid."""
    spec = _spec(job)
    for other in runs_in(root):
        mine = (other.spec.paper, other.spec.study) == _NAMES
        if mine and other.spec.digest != spec.digest:
            raise RunError(
                f"{root} holds a grid with other settings "
                f"({_difference(other.spec.config, spec.config)}): choose another "
                "folder, or the same settings to resume; nothing there was changed"
            )
    return RunFolder.create(root, spec)


def _difference(there: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    names = [name for name in asked if there.get(name) != asked[name]]
    if not names:
        return "an older version of the engine"
    name = names[0]
    return (
        f"{name} {json.dumps(there.get(name))[:80]}, not {json.dumps(asked[name])[:80]}"
    )


def _spec(job: Job) -> RunSpec:
    blueprint = job.blueprint
    named = (
        {name: p.to_dict() for name, p in blueprint.items()}
        if isinstance(blueprint, Mapping)
        else blueprint.to_dict()
    )
    digest = hashlib.sha256()
    for part in job.data:
        digest.update(repr(part.shape).encode() + part.tobytes())
    config = {
        "blueprint": named,
        "axes": {name: list(values) for name, values in job.axes.items()},
        "steps": job.steps,
        "drops": {str(step): factor for step, factor in job.drops.items()},
        "record": repr(job.record),
        "probes": [[p.name, probe_digest(p.measure), repr(p.when)] for p in job.probes],
        "divergence": to_strict_json(job.divergence),
        "dtype": job.dtype,
        "device": job.device.split(":")[0],
        "strategy": job.strategy,
        "data": digest.hexdigest()[:16],
        # Pieces are saved by their number, so a grid cut otherwise is another.
        "pieces": hashlib.sha256(repr(job.pieces).encode()).hexdigest()[:16],
    }
    paper, study = _NAMES
    seeds = tuple(job.axes.get("seed", (0,)))
    return RunSpec(paper=paper, study=study, scale="grid", config=config, seeds=seeds)


def _lost_rates(rows: Rows) -> Iterable[str]:
    """Yield a note on each rate at which every point diverged."""
    ends: dict[float, list[int | None]] = {}
    for row in rows.where(quantity="final_loss"):
        ends.setdefault(row["lr"], []).append(row["diverged_at"])
    for rate, steps in ends.items():
        lost = [step for step in steps if step is not None]
        if len(lost) == len(steps):
            yield (
                f"all {len(lost)} points with lr={rate:g} diverged (the last at step "
                f"{max(lost)}): try a lower rate"
            )


def _failed_probes(rows: Rows) -> Iterable[str]:
    """Yield a note on each probe that failed in some point."""
    failed: dict[str, tuple[int, str]] = {}
    for row in rows.where(quantity="retired_probe"):
        count, reason = failed.get(row["probe"], (0, row["reason"]))
        failed[row["probe"]] = (count + 1, reason)
    for name, (count, reason) in failed.items():
        yield (
            f"probe {name!r} raised in {count} points ({reason}) and was retired "
            "there: mend it and run again in another folder"
        )
