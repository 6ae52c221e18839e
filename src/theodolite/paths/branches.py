"""Find, count, delete or exchange the branches of a model.

A path gets longer by one with each branch that it takes, or with each layer of weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from torch import Tensor, nn

from theodolite.anatomy import Recording, anatomy
from theodolite.core import MeasurementError
from theodolite.instruments import Batch, Outputs

from .propagate import Marks, push_step, values_at
from .tape import SILENT, Step, Tape

Counted = Literal["branches", "layers"]


@dataclass(frozen=True, kw_only=True)
class ModelBranches:
    """The branches of a model."""

    branches: tuple["Branch", ...]  # in order of their additions
    calls: int  # how many calls the pass made in which they were found

    def on(self, tape: Tape) -> tuple["Branch", ...]:
        """Return branches that lead to the output; raise if calls differ."""
        if tape.calls != self.calls:
            raise MeasurementError(
                f"two passes of the model made {self.calls} and {tape.calls} calls, so "
                "its additions cannot be found again: pass a model whose passes do not "
                "depend on chance or on earlier ones"
            )
        met = {step.call: step.positions for step in tape.steps}
        kept = tuple(b for b in self.branches if b.position in met.get(b.call, ()))
        if not kept:
            raise MeasurementError(
                "no residual addition leads to the output: pass outputs=…, which picks "
                "a tensor behind the residual blocks"
            )
        return kept


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A branch of a residual addition."""

    call: int  # the call that adds it
    position: int  # its place among the arguments
    module: str  # where it is added
    addition: int  # index of the addition, in order
    outer: bool  # whether the addition lies in no branch of another one
    # Calls on the way from where it forks off to where it is added.
    calls: tuple[int, ...]
    modules: tuple[str, ...]  # outermost submodules that run on the route


class _Picked(nn.Module):
    """A model that returns what ``outputs`` returns."""

    def __init__(self, model: nn.Module, outputs: Outputs) -> None:
        super().__init__()
        self.model, self._outputs = model, outputs

    def forward(self, **batch: Any) -> Any:
        return self._outputs(self.model, batch["batch"])


def find_branches(
    model: nn.Module, batch: Batch, outputs: Outputs | None
) -> ModelBranches:
    """Return the branches of a model's residual additions; raise if there are none."""
    if outputs is None:
        parts, prefix = anatomy(model, batch), ""
    else:
        parts = anatomy(_Picked(model, outputs), {"batch": batch})
        prefix = "model."
    if not parts.additions:
        raise MeasurementError(
            f"{type(model).__name__} has no residual addition, which a path ensemble "
            "wants: pass a network with skip connections; theodolite.anatomy tells "
            "what one is made of"
        )
    numbers = _numbers(parts.recording)
    spans = [span for addition in parts.additions for span in addition.branches]
    within = {call for span in spans for call in span.calls}
    branches = tuple(
        Branch(
            call=numbers[span.into],
            position=span.position,
            module=addition.module.removeprefix(prefix),
            addition=place,
            outer=addition.call not in within,
            calls=tuple(numbers[call] for call in span.calls),
            modules=tuple(name.removeprefix(prefix) for name in span.modules),
        )
        for place, addition in enumerate(parts.additions)
        for span in addition.branches
    )
    return ModelBranches(branches=branches, calls=numbers[-1])


def marks_of(tape: Tape, branches: Sequence[Branch], counted: str) -> Marks:
    """Return, for each call, the arguments that make a path longer."""
    if counted == "layers":
        return {s.call: s.positions[:1] for s in tape.steps if s.weighted}
    marks: dict[int, tuple[int, ...]] = {}
    for branch in branches:
        marks[branch.call] = (*marks.get(branch.call, ()), branch.position)
    return marks


def fork_of(tape: Tape, branches: Sequence[Branch]) -> int:
    """Return the number of the tensor that enters the first residual block."""
    calls = {branch.call for branch in branches if branch.outer}
    first = next(step for step in tape.steps if step.call in calls)
    makers = {step.output: step for step in tape.steps}
    shared = set.intersection(*(_before(n, makers) for n in first.inputs))
    return max(shared) if shared else first.inputs[0]


def _numbers(recording: Recording) -> list[int]:
    """Return the number of each call of a recording as a tape counts them.

    The last entry is their count.
    """
    loud = [call.name not in SILENT for call in recording.calls]
    return [0, *accumulate(loud)]


def _before(number: int, makers: Mapping[int, Step]) -> set[int]:
    """Return a tensor and all tensors that it was computed from, by number."""
    seen, work = set(), [number]
    while work:
        current = work.pop()
        if current not in seen:
            seen.add(current)
            if current in makers:
                work += makers[current].inputs
    return seen


def without(tape: Tape, branches: Sequence[Branch]) -> Tensor:
    """Return the output with some branches deleted and all gates frozen."""
    off = {(branch.call, branch.position) for branch in branches}

    def weigh(step: Step, place: int) -> float:
        return 0.0 if (step.call, step.positions[place]) in off else 1.0

    return values_at(tape, weigh)


@dataclass(frozen=True, kw_only=True)
class _Route:
    """Steps of a branch on a tape: from one tensor to what is added."""

    steps: tuple[Step, ...]
    entry: int
    exit: int


def exchanged(tape: Tape, first: Branch, second: Branch) -> Tensor:
    """Return the output with two branches exchanged, together with their gates."""
    routes = [_route(tape, branch) for branch in (first, second)]
    ends = [(tape.shape(route.entry), tape.shape(route.exit)) for route in routes]
    if ends[0] != ends[1]:
        shapes = " and ".join(f"{tuple(a)} to {tuple(b)}" for a, b in ends)
        raise MeasurementError(
            f"branches {shapes} cannot be exchanged: choose two of the same shapes"
        )
    turned = {
        routes[0].exit: (routes[0], routes[1]),
        routes[1].exit: (routes[1], routes[0]),
    }
    values = {number: value[None] for number, value in tape.sources.items()}
    for step in tape.steps:
        if step.output in turned:
            here, there = turned[step.output]
            values[step.output] = _along(there, values[here.entry])
        else:
            values[step.output] = push_step(step, [values[n] for n in step.inputs])
    return values[tape.output][0]


def _along(route: _Route, start: Tensor) -> Tensor:
    """Return the output of a branch for the input of another branch."""
    values = {route.entry: start}
    for step in route.steps:
        values[step.output] = push_step(step, [values[n] for n in step.inputs])
    return values[route.exit]


def _route(tape: Tape, branch: Branch) -> _Route:
    """Return the steps of a branch on a tape."""
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
    return _Route(steps=ordered, entry=entries.pop(), exit=exit)
