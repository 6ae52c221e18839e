"""The result of an operation: the altered copy, its log, its check, and undo."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.anatomy import returned_tensors
from theodolite.core import Rows, SurgeryError, printable
from theodolite.instruments import Batch, full_precision, preserve, run_model

from .attaching import detach, replace


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change.

    Attributes:
        module: Path of the module that was changed, ``""`` for the model.
        what: What was changed.
        before: The old state.
        after: The new state, or the reason why it could not be changed.
        done: Whether it was changed.
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
        operation: Name of the operation.
        changes: What was changed, and what could not be.
    """

    operation: str
    changes: tuple[Change, ...]

    @property
    def done(self) -> tuple[Change, ...]:
        """Changes that were made."""
        return tuple(change for change in self.changes if change.done)

    @property
    def left(self) -> tuple[Change, ...]:
        """Changes that could not be made, with the reason."""
        return tuple(change for change in self.changes if not change.done)

    def rows(self) -> Rows:
        """Return one flat row per change."""
        return Rows(
            [
                {"quantity": self.operation, "value": int(each.done), **vars(each)}
                for each in self.changes
            ]
        )

    def __str__(self) -> str:
        head = ("module", "what", "before", "after")
        lines: list[tuple[str, ...]] = [head]
        for each in self.changes:
            after = each.after if each.done else f"left: {each.after}"
            lines.append((each.module or "(model)", each.what, each.before, after))
        widths = [max(len(line[column]) for line in lines) for column in range(4)]
        table = [
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        count = f"{len(self.done)} changes" if len(self.done) != 1 else "1 change"
        left = f", {len(self.left)} left" if self.left else ""
        return printable("\n".join([f"{self.operation}: {count}{left}", *table]))


@dataclass(frozen=True, kw_only=True)
class Check:
    """How the altered network runs on the batch.

    Attributes:
        change: Largest change of an output, relative to the largest output.
        gradient: Norm of the gradient of a weighted mean of the outputs; NaN if
            neither the original nor the copy can be differentiated.
        unreached: Names of parameters that got a gradient before and get none now.
        parameters: Number of parameters, before and after.
    """

    change: float
    gradient: float
    unreached: tuple[str, ...]
    parameters: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class ReplacedModule:
    """A module that was replaced."""

    path: str
    old: nn.Module

    def revert(self, model: nn.Module) -> None:
        """Restore the old module."""
        replace(model, self.path, copy.deepcopy(self.old))


@dataclass(frozen=True, kw_only=True)
class AttachedEdit:
    """An edit that was added to a module."""

    path: str
    label: str
    extras: tuple[str, ...]

    def revert(self, model: nn.Module) -> None:
        """Remove the edit."""
        detach(model, self.path, self.label, self.extras)


@dataclass(frozen=True, kw_only=True)
class WrittenParameter:
    """A parameter that was overwritten."""

    name: str
    old: Tensor

    def revert(self, model: nn.Module) -> None:
        """Restore the old numbers."""
        with torch.no_grad():
            model.get_parameter(self.name).copy_(self.old)


Step = ReplacedModule | AttachedEdit | WrittenParameter


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """An altered copy of a network.

    Attributes:
        model: The copy, in the modes of the original.
        log: What was changed.
        check: How it runs on the batch.
        steps: The changes in the form that undo needs.
    """

    model: nn.Module
    log: Log
    check: Check
    steps: Sequence[Step]

    def undo(self) -> nn.Module:
        """Return a copy of the altered network without the operation.

        Modules, edits and numbers are restored bit for bit; parameters that the
        operation did not write keep later training.
        """
        model: Any = copy.deepcopy(self.model)
        for step in reversed(self.steps):
            step.revert(model)
        return model


@dataclass(frozen=True, kw_only=True)
class PassResult:
    """Result of one forward and backward pass."""

    outputs: tuple[Tensor, ...]  # floating-point tensors that the model returned
    # Norm of the gradient by all parameters, NaN if the network cannot be
    # differentiated at all.
    gradient: float
    reached: frozenset[str]  # parameters that got a gradient
    unreached: frozenset[str]  # parameters that require a gradient and got none
    parameters: int  # number of parameters


def forward_backward(model: nn.Module, batch: Batch) -> PassResult:
    """Run a model forwards and backwards on a batch, without changing it."""
    with preserve(model), torch.enable_grad(), full_precision():
        model.zero_grad(set_to_none=True)
        returned = returned_tensors(run_model(model, batch))
        outputs = [output for output in returned if output.is_floating_point()]
        loss = sum(
            (_weighted_mean(output) for output in outputs),
            torch.zeros((), device="cpu"),
        )
        failed = False
        try:
            if loss.requires_grad:
                loss.backward()
        except RuntimeError:  # for example, code that overwrites its inputs
            failed = True
        named = dict(model.named_parameters())
        grads = {n: p.grad for n, p in named.items() if p.grad is not None}
        total = math.fsum(float(g.double().square().sum()) for g in grads.values())
        wanted = {n for n, p in named.items() if p.requires_grad}
        return PassResult(
            outputs=tuple(output.detach().clone() for output in outputs),
            gradient=math.nan if failed else math.sqrt(total),
            reached=frozenset(grads),
            unreached=frozenset(wanted - set(grads)),
            parameters=sum(p.numel() for p in named.values()),
        )


def _weighted_mean(output: Tensor) -> Tensor:
    r"""Return the mean of $\cos(k)\, y_k$, whose gradient is not 0 at $y = 0$."""
    places = torch.arange(output.numel(), device=output.device, dtype=output.dtype)
    return (output.flatten() * torch.cos(places)).mean()


def compare(before: PassResult, after: PassResult) -> Check:
    """Return the check of two passes; raise for other shapes or infinite numbers."""
    shapes = [[tuple(o.shape) for o in each.outputs] for each in (before, after)]
    if shapes[0] != shapes[1]:
        raise SurgeryError(
            f"the altered network returns shapes {shapes[1]}, wanted are those of the "
            f"original, {shapes[0]}: alter fewer parts of it"
        )
    if not _sound(after) and _sound(before):
        raise SurgeryError(
            "the altered network returns numbers or gradients that are not finite, and "
            "the original did not: use smaller scales, or alter fewer parts of it"
        )
    size = max((float(o.abs().max()) for o in before.outputs if o.numel()), default=0.0)
    pairs = zip(before.outputs, after.outputs, strict=True)
    moved = max(
        (float((a - b).abs().max()) for b, a in pairs if b.numel()), default=0.0
    )
    return Check(
        change=moved / size if size else moved,
        gradient=after.gradient,
        unreached=tuple(sorted(after.unreached & before.reached)),
        parameters=(before.parameters, after.parameters),
    )


def _sound(each: PassResult) -> bool:
    finite = all(bool(torch.isfinite(output).all()) for output in each.outputs)
    return finite and math.isfinite(each.gradient)
