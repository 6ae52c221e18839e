"""Pieces of a grid: what one process trains at a time, and saves in one file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import NormMode, Row, ShortcutBlueprint, Status
from theodolite.instruments import preserve_process

from ..engines.protocol import Engine
from ..engines.strategies import choose, engine_for, seconds
from ..probes.probe import Probe, ProbeRunner, Snapshot
from ..probes.schedules import AtSteps, Schedule
from .axes import Point, expand
from .stack import PointResult, train_stack

# A piece of about this length is long against saving it and short against losing it.
_SECONDS = 2.0
_LARGEST = 2048
_LAST = AtSteps(())  # keeps the last loss only, which is always kept
# Quantities of a grid's own rows.
QUANTITIES = ("final_loss", "loss", "retired_probe")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything a process needs to train any piece of a grid; picklable."""

    blueprint: ShortcutBlueprint | Mapping[str, ShortcutBlueprint]
    axes: Mapping[str, tuple[Any, ...]]
    drops: Mapping[int, float]
    data: tuple[np.ndarray, np.ndarray]
    steps: int
    probes: tuple[Probe, ...]
    record: Schedule | None
    divergence: float
    dtype: str
    device: str
    strategy: str

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields and the pieces, so that all processes cut alike."""
        derived = {"points", "_engines"}
        return {k: v for k, v in self.__dict__.items() if k not in derived}

    @cached_property
    def points(self) -> list[Point]:
        """Every run of the grid."""
        axes = {name: v for name, v in self.axes.items() if name != "network"}
        return expand(self.blueprint, axes, drops=self.drops)[1]

    @cached_property
    def pieces(self) -> list[tuple[str, list[int]]]:
        """Pieces: a strategy and the numbers of the points, all of one shape."""
        shapes: dict[ShortcutBlueprint, list[int]] = {}
        shape_of: dict[int, list[int]] = {}
        for number, point in enumerate(self.points):
            blueprint = point.blueprint
            # Points share the objects of their blueprints, so few are looked at.
            if id(blueprint) not in shape_of:
                shape = blueprint.with_(init="zero", init_scale=1.0)
                shape_of[id(blueprint)] = shapes.setdefault(shape, [])
            shape_of[id(blueprint)].append(number)
        return [
            (name, numbers[start : start + size])
            for shape, numbers in shapes.items()
            for name, size in [self._size(shape)]
            for start in range(0, len(numbers), size)
        ]

    def engine(self, name: str, blueprint: ShortcutBlueprint) -> Engine:
        """Return the engine of a shape; the last one is kept for the next piece."""
        key = name, blueprint.with_(init="zero", init_scale=1.0)
        if key not in self._engines:
            self._engines.clear()
            self._engines[key] = engine_for(
                name, blueprint, self.data, dtype=self.dtype, device=self.device
            )
        return self._engines[key]

    @cached_property
    def _engines(self) -> dict[tuple[str, ShortcutBlueprint], Engine]:
        return {}

    @property
    def seconds(self) -> float:
        """Estimated processor time of the whole grid."""
        return sum(
            len(numbers) * self._seconds(name, self.points[numbers[0]].blueprint)
            for name, numbers in self.pieces
        )

    def _size(self, shape: ShortcutBlueprint) -> tuple[str, int]:
        name = choose(shape, strategy=self.strategy, device=self.device)
        if name == "stacked" and self.device != "cpu":  # bounded by its memory alone
            return name, _LARGEST
        fit = int(_SECONDS / max(self._seconds(name, shape), 1e-12))
        return name, min(max(fit, 1), _LARGEST)

    def _seconds(self, name: str, shape: ShortcutBlueprint) -> float:
        return seconds(name, shape, len(self.data[0]), self.steps)


@preserve_process()  # which probes may change
def train_piece(job: Job, labels: Mapping[str, Any]) -> list[Row]:
    """Train the points of one piece and return their rows."""
    name, numbers = job.pieces[labels["piece"]]
    points = [job.points[number] for number in numbers]
    runners = _runners(job, points, labels)
    if name == "plain":
        results = [
            _train_plain(job, *pair) for pair in zip(points, runners, strict=True)
        ]
        method = "plain loop"
    else:
        engine = job.engine(name, points[0].blueprint)
        results, method = _train_stacked(job, engine, points, runners), engine.name
    rows: list[Row] = []
    eps = float(np.finfo(job.dtype).eps)
    for point, runner, result in zip(points, runners, results, strict=True):
        rows += _rows(job, point, result, method, eps)
        rows += runner.rows
        rows += [
            {**point.labels, "quantity": "retired_probe", "probe": name, "reason": why}
            for name, why in runner.retired.items()
        ]
    return rows


def _runners(
    job: Job, points: list[Point], labels: Mapping[str, Any]
) -> list[ProbeRunner]:
    if not job.probes:  # one that stays empty serves all
        return [ProbeRunner(())] * len(points)
    # What fails is kept in the rows, and said once for the whole grid.
    return [
        ProbeRunner(job.probes, {**point.labels, **labels}, quiet=True)
        for point in points
    ]


def _train_stacked(
    job: Job, engine: Engine, points: list[Point], runners: list[ProbeRunner]
) -> list[PointResult]:
    import torch

    from theodolite.instruments import HalfSquareLoss, Problem

    dtype = getattr(torch, job.dtype)
    drawn: dict[tuple[int, int], np.ndarray] = {}
    keys = [(id(point.blueprint), point.seed) for point in points]
    for key, point in zip(keys, points, strict=True):
        if key not in drawn:
            drawn[key] = networks.initial_weights(point.blueprint, seed=point.seed)

    def snapshot(number: int, step: int, loss: float, weights: np.ndarray) -> Snapshot:
        def make() -> Problem:
            network = networks.ShortcutNetwork(points[number].blueprint, dtype=dtype)
            networks.set_weights(network, weights)
            # A copy, since a probe may change it.
            x, y = (torch.tensor(p, dtype=dtype, device=job.device) for p in job.data)
            network = network.to(job.device)
            return Problem(network, (x, y), loss=HalfSquareLoss(), norm_mode="as_is")

        return Snapshot(
            step=step,
            loss=loss,
            problem=make,
            labels=points[number].labels,
        )

    return train_stack(
        engine,
        [drawn[key] for key in keys],
        [point.descent for point in points],
        steps=job.steps,
        runners=runners,
        record=job.record or _LAST,
        divergence=job.divergence,
        snapshot=snapshot,
    )


def _train_plain(job: Job, point: Point, runner: ProbeRunner) -> PointResult:
    import torch

    from ..loop.loop import train

    network = networks.build(
        point.blueprint,
        seed=point.seed,
        dtype=getattr(torch, job.dtype),
        device=job.device,
    )
    run = train(
        network,
        job.data,
        optimizer=point.descent,
        steps=job.steps,
        probes=runner,
        record=job.record or _LAST,
        divergence=job.divergence,
    )
    return PointResult(run.steps, run.loss, run.diverged_at)


def _rows(
    job: Job, point: Point, result: PointResult, method: str, eps: float
) -> list[Row]:
    lost = result.diverged_at is not None
    final = None if lost else result.final_loss
    rows: list[Row] = [
        {
            **point.labels,
            "quantity": "final_loss",
            "value": final,
            "error": None if final is None else eps * abs(final),
            "diverged_at": result.diverged_at,
            "status": str(Status.DIVERGED if lost else Status.FINISHED),
            "norm_mode": str(NormMode.BATCH),
            "method": method,
        }
    ]
    if job.record is not None:
        losses = zip(result.steps.tolist(), result.losses.tolist(), strict=True)
        rows += [
            {
                **point.labels,
                "quantity": "loss",
                "step": step,
                "value": loss,
                "error": eps * abs(loss),
            }
            for step, loss in losses
        ]
    return rows
