"""Train a stack of points with an engine: run probes, keep losses, retire points."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..engines.protocol import Engine, Rule
from ..optimizers.descent import Descent
from ..probes.probe import ProbeRunner, Snapshot
from ..probes.schedules import Schedule

# Makes a snapshot of a point from its number, step, loss and weights.
MakeSnapshot = Callable[[int, int, float, np.ndarray], Snapshot]
# Losses are returned from the engine in spans of this many steps.
_LONGEST = 1024


@dataclass(frozen=True, eq=False)
class PointResult:
    """Losses of one point, and whether it diverged."""

    steps: np.ndarray  # steps of the recorded losses
    # Loss before the update of each; the last is that of the final weights, or the one
    # at which the point was retired.
    losses: np.ndarray
    diverged_at: int | None  # step at which the point was retired, None if it finished

    @property
    def final_loss(self) -> float:
        """Loss of the final weights; NaN for a diverged point."""
        return float("nan") if self.diverged_at is not None else float(self.losses[-1])


def train_stack(
    engine: Engine,
    weights: Sequence[np.ndarray],
    descents: Sequence[Descent],
    *,
    steps: int,
    runners: Sequence[ProbeRunner],
    record: Schedule,
    divergence: float,
    snapshot: MakeSnapshot,
) -> list[PointResult]:
    """Train every point of a stack; a point that diverges is retired.

    Args:
        engine: Updates the stack.
        weights: First weights of each point, shape (depth, width, width).
        descents: Rate, momentum and weight decay of each point.
        steps: Updates to make.
        runners: Probes of each point.
        record: Which losses to keep.
        divergence: Multiple of its first loss above which a point is retired.
        snapshot: Makes the snapshots that probes see.
    """
    if len(runners) > 1 and runners[0].floor > -np.inf:
        # Points cross a loss level at different steps, so each is trained alone.
        return [
            train_stack(
                engine,
                weights[point : point + 1],
                descents[point : point + 1],
                steps=steps,
                runners=runners[point : point + 1],
                record=record,
                divergence=divergence,
                snapshot=lambda _, *at, point=point: snapshot(point, *at),
            )[0]
            for point in range(len(runners))
        ]
    stack = _Stack(engine, weights, descents, steps, runners, snapshot)
    return stack.run([step for step in range(steps) if record.due(step)], divergence)


class _Stack:
    """Points in lockstep; retired points leave the stack."""

    def __init__(
        self,
        engine: Engine,
        weights: Sequence[np.ndarray],
        descents: Sequence[Descent],
        steps: int,
        runners: Sequence[ProbeRunner],
        snapshot: MakeSnapshot,
    ) -> None:
        self.engine, self.steps, self.runners = engine, steps, runners
        self.snapshot = snapshot
        self.weights = engine.place(weights)
        shape = len(weights), *weights[0].shape
        self.velocity = engine.place(np.broadcast_to(0.0, shape))
        # Points share descents: one row of rates per descent, and each point's row.
        shared = {id(descent): descent for descent in descents}
        self.rates = np.stack([d.rates(0, steps) for d in shared.values()])
        row = {key: number for number, key in enumerate(shared)}
        self.rate_of = np.array([row[id(descent)] for descent in descents])
        self.momentum = np.array([float(d.momentum) for d in descents])
        self.decay = np.array([float(d.weight_decay) for d in descents])
        self.live = np.arange(len(descents))
        self.last_loss = np.full(len(descents), np.nan)
        self.diverged_at = np.full(len(descents), -1)
        self.stopped = np.nan
        # Points have the same probes, so what is due for one is due for all.
        self.due = runners[0].schedule(steps)

    def run(self, kept: list[int], divergence: float) -> list[PointResult]:
        """Train all points, keeping the losses of some steps."""
        self.kept = np.array(kept, dtype=np.intp)
        self.losses = np.full((len(self.live), len(kept)), np.nan)
        now = self.engine.losses(self.weights)
        with np.errstate(over="ignore"):
            self.ceiling = np.where(now == 0, np.inf, divergence * np.abs(now))
        self._retire(0, now, ~np.isfinite(now))
        step = 0
        while len(self.live) and step < self.steps:
            if self._due(step):
                self._measure(step)
            step = self._advance(step, self._next(step))
        if len(self.live):
            now = self.engine.losses(self.weights)
            self.last_loss[self.live] = now
            self._retire(self.steps, now, ~(now <= self.ceiling))
            if len(self.live) and self._due(self.steps):
                self._measure(self.steps)
        return self._results()

    def _due(self, step: int) -> bool:
        return bool(self.due[step]) or self._floor > -np.inf

    @property
    def _floor(self) -> float:
        """The next loss level of a probe; only a point alone in its stack has one."""
        return self.runners[0].floor if len(self.runners) == 1 else -np.inf

    def _next(self, step: int) -> int:
        last = min(self.steps, step + _LONGEST)
        due = np.flatnonzero(self.due[step + 1 : last])
        return step + 1 + int(due[0]) if len(due) else last

    def _advance(self, step: int, stop: int) -> int:
        """Make updates up to a step; return the step that was reached."""
        rule = Rule.of(
            self.rates[self.rate_of[self.live], step:stop],
            momentum=self.momentum[self.live],
            weight_decay=self.decay[self.live],
            floor=self._floor,
            ceiling=self.ceiling,
        )
        done = self.engine.advance(self.weights, self.velocity, rule)
        first, last = np.searchsorted(self.kept, (step, stop))
        if last > first:
            losses = done.losses[:, self.kept[first:last] - step]
            self.losses[self.live, first:last] = losses
        early = done.taken < stop - step
        lost = early & ~(done.stopped <= self.ceiling)
        # A point stopped at its level is alone in its stack, so steps do not differ.
        waits = bool((early & ~lost).any())
        self.stopped = float(done.stopped[0]) if waits else np.nan
        self._retire(step + done.taken, done.stopped, lost)
        return step + int(done.taken[0]) if waits else stop

    def _measure(self, step: int) -> None:
        # At a level the loss is the one that was compared with it: evaluated again, it
        # could round to the other side and miss the crossing.
        at_level = not np.isnan(self.stopped)
        now = [self.stopped] if at_level else self.engine.losses(self.weights)
        for place, point in enumerate(self.live.tolist()):
            runner, loss = self.runners[point], float(now[place])
            if runner.due(step) or loss <= runner.floor:
                weights = self.engine.fetch(self.weights, place)
                runner.visit(self.snapshot(point, step, loss, weights))

    def _retire(
        self, step: int | np.ndarray, losses: np.ndarray, lost: np.ndarray
    ) -> None:
        if not lost.any():
            return
        at = np.broadcast_to(step, lost.shape)
        for place in np.flatnonzero(lost):
            point = self.live[place]
            self.diverged_at[point] = at[place]
            self.last_loss[point] = losses[place]
        kept = np.flatnonzero(~lost)
        self.live, self.ceiling = self.live[kept], self.ceiling[kept]
        self.weights = self.engine.keep(self.weights, kept)
        self.velocity = self.engine.keep(self.velocity, kept)

    def _results(self) -> list[PointResult]:
        whole = np.append(self.kept, self.steps)
        losses = np.column_stack([self.losses, self.last_loss])
        results = []
        for point, end in enumerate(self.diverged_at.tolist()):
            if end < 0:
                results.append(PointResult(whole, losses[point], None))
                continue
            before = np.searchsorted(self.kept, end)
            steps = np.append(self.kept[:before], end)
            ended = np.append(self.losses[point, :before], self.last_loss[point])
            results.append(PointResult(steps, ended, end))
        return results
