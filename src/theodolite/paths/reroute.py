"""A frozen network with branches deleted, or two of them exchanged."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from theodolite.core import MeasurementError
from theodolite.paths.marks import Branch
from theodolite.paths.propagate import push_step, values_at
from theodolite.paths.tape import Step, Tape


def without(tape: Tape, branches: Sequence[Branch]) -> Tensor:
    """Return the output with some branches deleted, all gates as they were."""
    off = {(branch.call, branch.position) for branch in branches}

    def weigh(step: Step, place: int) -> float:
        return 0.0 if (step.call, step.positions[place]) in off else 1.0

    return values_at(tape, weigh)


@dataclass(frozen=True, kw_only=True)
class _Way:
    """Steps of a branch on a tape: from one tensor to what is added."""

    steps: tuple[Step, ...]
    entry: int
    exit: int


def exchanged(tape: Tape, first: Branch, second: Branch) -> Tensor:
    """Return the output with two branches in each other's place, gates and all."""
    ways = [_way(tape, branch) for branch in (first, second)]
    ends = [(tape.shape(way.entry), tape.shape(way.exit)) for way in ways]
    if ends[0] != ends[1]:
        shapes = " and ".join(f"{tuple(a)} to {tuple(b)}" for a, b in ends)
        raise MeasurementError(
            f"branches {shapes} cannot be exchanged: choose two of the same shapes"
        )
    turned = {ways[0].exit: (ways[0], ways[1]), ways[1].exit: (ways[1], ways[0])}
    values = {number: value[None] for number, value in tape.sources.items()}
    for step in tape.steps:
        if step.output in turned:
            here, there = turned[step.output]
            values[step.output] = _along(there, values[here.entry])
        else:
            values[step.output] = push_step(step, [values[n] for n in step.inputs])
    return values[tape.output][0]


def _along(way: _Way, start: Tensor) -> Tensor:
    """Send a tensor along a branch of another place."""
    values = {way.entry: start}
    for step in way.steps:
        values[step.output] = push_step(step, [values[n] for n in step.inputs])
    return values[way.exit]


def _way(tape: Tape, branch: Branch) -> _Way:
    """Find the steps of a branch."""
    calls = set(branch.calls)
    makers = {step.output: step for step in tape.steps}
    (join,) = (step for step in tape.steps if step.call == branch.call)
    exit = join.inputs[join.positions.index(branch.position)]
    steps, entries, work = {}, set(), [exit]
    while work:
        number = work.pop()
        step = makers.get(number)
        if step is None or step.call not in calls:
            entries.add(number)
        elif number not in steps:
            steps[number] = step
            work += step.inputs
    if len(entries) != 1 or not steps:
        raise MeasurementError(
            f"a branch of {branch.module!r} takes {len(entries)} tensors, wanted is "
            "one, so that it can stand in another's place: choose another"
        )
    ordered = tuple(s for s in tape.steps if s.output in steps)
    return _Way(steps=ordered, entry=entries.pop(), exit=exit)
