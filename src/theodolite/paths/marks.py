"""What makes a path longer by one: a branch taken, or a layer of weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, get_args

from torch import nn

from theodolite.anatomy import Recording, anatomy
from theodolite.core import MeasurementError, unknown_name
from theodolite.instruments import Batch, Outputs
from theodolite.paths.propagate import Marks
from theodolite.paths.tape import SILENT, Step, Tape

Counted = Literal["branches", "layers"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The branches of a model.

    Attributes:
        branches: In order of their additions.
        calls: How many calls the pass made that they were found in.
    """

    branches: tuple["Branch", ...]
    calls: int

    def on(self, tape: Tape) -> tuple["Branch", ...]:
        """Return those that lead to the output of a pass.

        Raises:
            MeasurementError: The pass made other calls, or there is none.
        """
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
    """A branch of a residual addition.

    Attributes:
        call: The call that adds it.
        position: Its place among the arguments.
        module: Where it is added.
        addition: Index of the addition, in order.
        outer: Whether the addition lies in no branch of another.
        calls: Calls on the way from where it forks off to where it is added.
        modules: Outermost submodules that run on the way.
    """

    call: int
    position: int
    module: str
    addition: int
    outer: bool
    calls: tuple[int, ...]
    modules: tuple[str, ...]


class _Picked(nn.Module):
    """A model with its output picked."""

    def __init__(self, model: nn.Module, outputs: Outputs) -> None:
        super().__init__()
        self.model, self._outputs = model, outputs

    def forward(self, **batch: Any) -> Any:
        return self._outputs(self.model, batch["batch"])


def find_branches(model: nn.Module, batch: Batch, outputs: Outputs | None) -> Found:
    """Find the branches of a model's residual additions.

    Raises:
        MeasurementError: There is none.
    """
    if outputs is None:
        found, prefix = anatomy(model, batch), ""
    else:
        found = anatomy(_Picked(model, outputs), {"batch": batch})
        prefix = "model."
    if not found.additions:
        raise MeasurementError(
            f"{type(model).__name__} has no residual addition, which a path ensemble "
            "wants: pass a network with skip connections; theodolite.anatomy tells "
            "what one is made of"
        )
    numbers = _numbers(found.recording)
    spans = [span for addition in found.additions for span in addition.branches]
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
        for place, addition in enumerate(found.additions)
        for span in addition.branches
    )
    return Found(branches=branches, calls=numbers[-1])


def marks_of(tape: Tape, branches: Sequence[Branch], counted: str) -> Marks:
    """Return which arguments of which calls make a path longer."""
    if counted not in get_args(Counted):
        raise unknown_name("count of path lengths", counted, get_args(Counted))
    if counted == "layers":
        return {s.call: s.positions[:1] for s in tape.steps if s.weighted}
    found: dict[int, tuple[int, ...]] = {}
    for branch in branches:
        found[branch.call] = (*found.get(branch.call, ()), branch.position)
    return found


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
    """Return a tensor and all that it was made from."""
    found, work = set(), [number]
    while work:
        current = work.pop()
        if current not in found:
            found.add(current)
            if current in makers:
                work += makers[current].inputs
    return found
