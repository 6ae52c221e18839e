"""What an operation returns: the altered copy, what was changed, and the way back."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import Rows
from theodolite.surgery.attaching import detach, replace


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change, in words.

    Attributes:
        module: Path of the module that was changed, ``""`` for the model.
        what: What was changed.
        before: As it was.
        after: As it is; where nothing was done, why.
        done: Whether it was done.
    """

    module: str
    what: str
    before: str
    after: str
    done: bool = True


@dataclass(frozen=True, kw_only=True)
class Log:
    """The changes of an operation, in order; prints as a table.

    Attributes:
        operation: Its name.
        changes: What was done, and what was left.
    """

    operation: str
    changes: tuple[Change, ...]

    @property
    def done(self) -> tuple[Change, ...]:
        """What was done."""
        return tuple(change for change in self.changes if change.done)

    @property
    def left(self) -> tuple[Change, ...]:
        """What could not be done, and why."""
        return tuple(change for change in self.changes if not change.done)

    def rows(self) -> Rows:
        """Return one flat row a change."""
        return Rows(
            [
                {"quantity": self.operation, "value": int(each.done), **vars(each)}
                for each in self.changes
            ]
        )

    def __str__(self) -> str:
        head = ("module", "what", "before", "after")
        lines = [head, *(_cells(change) for change in self.changes)]
        widths = [max(len(line[column]) for line in lines) for column in range(4)]
        told = [
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        count = f"{len(self.done)} changes" if len(self.done) != 1 else "1 change"
        left = f", {len(self.left)} left" if self.left else ""
        return "\n".join([f"{self.operation}: {count}{left}", *told])


def _cells(change: Change) -> tuple[str, str, str, str]:
    after = change.after if change.done else f"left: {change.after}"
    return change.module or "(model)", change.what, change.before, after


@dataclass(frozen=True, kw_only=True)
class Check:
    """What running the altered network on the batch showed.

    Attributes:
        change: Largest change of an output, relative to the largest output.
        gradient: Norm of the gradient of a weighted mean of the outputs; NaN if the
            original cannot be differentiated and the copy neither.
        unreached: Names of parameters that require a gradient and got none, and did
            before.
        parameters: Number of parameters, before and after.
    """

    change: float
    gradient: float
    unreached: tuple[str, ...]
    parameters: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Replaced:
    """A module in the place of another."""

    path: str
    old: nn.Module

    def revert(self, model: nn.Module) -> None:
        """Put the old module back."""
        replace(model, self.path, copy.deepcopy(self.old))


@dataclass(frozen=True, kw_only=True)
class Attached:
    """An edit on a module."""

    path: str
    label: str
    extras: tuple[str, ...]

    def revert(self, model: nn.Module) -> None:
        """Take the edit off."""
        detach(model, self.path, self.label, self.extras)


@dataclass(frozen=True, kw_only=True)
class Written:
    """New numbers in a parameter."""

    name: str
    old: Tensor

    def revert(self, model: nn.Module) -> None:
        """Write the old numbers."""
        with torch.no_grad():
            model.get_parameter(self.name).copy_(self.old)


Step = Replaced | Attached | Written


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """An altered copy of a network.

    Attributes:
        model: The copy, in the modes in which the original is.
        log: What was changed.
        check: What it does on the batch.
        steps: The changes as undoing needs them.
    """

    model: nn.Module
    log: Log
    check: Check
    steps: Sequence[Step]

    def undo(self) -> nn.Module:
        """Return a copy of the altered network without the operation.

        Modules, edits and numbers are as they were before, bit for bit; parameters
        that the operation did not write to are as they are now, so that what was
        learned since then stays.
        """
        model: Any = copy.deepcopy(self.model)
        for step in reversed(self.steps):
            step.revert(model)
        return model
