"""The frame of every operation: copy, read, alter, check."""

import copy
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.anatomy import Addition, Anatomy, anatomy_of
from theodolite.core import ConfigError, SurgeryError, TheodoliteError
from theodolite.instruments import Batch
from theodolite.surgery.altered import SumEdit, VisitEdit
from theodolite.surgery.attaching import attach, mark, replace
from theodolite.surgery.checking import Pass, compare, run_both_ways
from theodolite.surgery.result import (
    Attached,
    Change,
    Log,
    Replaced,
    Result,
    Step,
    Written,
)
from theodolite.surgery.settings import listed
from theodolite.surgery.transcript import Transcript, transcribe

Which = int | str | Sequence[int | str] | None
# Outputs that must not change may do so by this, relative to the largest.
SAME = 1e-6


class Operation:
    """A copy of a model on the table.

    Args:
        name: Of the operation.
        model: The original, which is not touched.
        batch: Runs it.
        evaluate: Put the copy into eval mode.

    Attributes:
        model: The copy.
        transcript: One run of it, before anything was changed.
        anatomy: What it was made of then.
    """

    def __init__(
        self, name: str, model: nn.Module, batch: Batch, *, evaluate: bool = False
    ) -> None:
        self.name, self.batch = name, batch
        self.model = _copied(model)
        self._modes = [(module, module.training) for module in self.model.modules()]
        if evaluate:
            self.model.eval()
        self.transcript: Transcript = transcribe(self.model, batch)
        self.anatomy: Anatomy = anatomy_of(self.transcript.recording)
        self._steps: list[Step] = []
        self._changes: list[Change] = []
        self._before: Pass = run_both_ways(self.model, batch)
        _require_numbers(self._before)

    def note(self, module: str, what: str, before: str, after: str) -> None:
        """Write down a change."""
        self._changes.append(
            Change(module=module, what=what, before=before, after=after)
        )

    def leave(self, module: str, what: str, before: str, reason: object) -> None:
        """Write down what could not be done."""
        self._changes.append(
            Change(
                module=module, what=what, before=before, after=str(reason), done=False
            )
        )

    @property
    def left(self) -> list[Change]:
        """What could not be done so far."""
        return [change for change in self._changes if not change.done]

    def attach(
        self,
        path: str,
        edit: SumEdit | VisitEdit,
        extras: Mapping[str, nn.Parameter | nn.Module] | None = None,
    ) -> None:
        """Put an edit on a module."""
        extras = extras or {}
        attach(self.model, path, edit, extras)
        self._steps.append(Attached(path=path, label=edit.label, extras=tuple(extras)))

    def replace(self, path: str, new: nn.Module) -> nn.Module:
        """Put a module in the place of another."""
        if not path:
            raise SurgeryError(
                "the model itself is the layer that should be replaced, wanted is a "
                "layer inside a model: wrap it, for instance in nn.Sequential"
            )
        old = replace(self.model, path, new)
        modes = {id(module): mode for module, mode in self._modes}
        mode = modes.get(id(old), old.training)
        self._modes += [(module, mode) for module in new.modules()]
        new.train(old.training)
        mark(new)
        self._steps.append(Replaced(path=path, old=old))
        return old

    def write(self, name: str, numbers: Tensor) -> None:
        """Write numbers into a parameter."""
        parameter = self.model.get_parameter(name)
        self._steps.append(Written(name=name, old=parameter.detach().clone()))
        with torch.no_grad():
            parameter.copy_(numbers)

    def label(self) -> str:
        """Return a name for an edit that no other has."""
        return f"{self.name}-{uuid.uuid4().hex}"

    def finish(self, *, unchanged: bool = False, none: str = "") -> Result:
        """Run the altered copy, and return it.

        Args:
            unchanged: Outputs must be what they were.
            none: What to say if there was nothing to do.

        Raises:
            SurgeryError: Nothing was done, or what was done does not work.
        """
        log = Log(operation=self.name, changes=tuple(self._changes))
        if not log.done:
            raise SurgeryError(log.left[0].after if log.left else none)
        check = compare(self._before, self._run())
        if unchanged and not check.change <= self._tolerance():
            raise SurgeryError(
                f"outputs changed by {check.change:.1e} of the largest, wanted is at "
                f"most {self._tolerance():.0e}: convert the model to float64, or put "
                "it into eval mode"
            )
        for module, mode in self._modes:
            module.training = mode
        return Result(model=self.model, log=log, check=check, steps=tuple(self._steps))

    def _tolerance(self) -> float:
        kinds = [o.dtype for o in self._before.outputs]
        return max([SAME, *(32 * torch.finfo(kind).eps for kind in kinds)])

    def _run(self) -> Pass:
        try:
            return run_both_ways(self.model, self.batch)
        except TheodoliteError as error:
            raise SurgeryError(f"the altered network does not run: {error}") from error
        except Exception as error:  # whatever somebody's forward raises
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise SurgeryError(
                f"the altered network does not run ({said}), wanted are parts that its "
                "code can do without: alter fewer of them"
            ) from error


def _require_numbers(found: Pass) -> None:
    """Refuse a batch on which nothing could be checked."""
    outputs = found.outputs
    empty = bool(outputs) and not any(output.numel() for output in outputs)
    if empty or any(bool(output.isnan().any()) for output in outputs):
        raise SurgeryError(
            f"the network returns {'no numbers' if empty else 'NaN'} on the batch, "
            "wanted is one that shows what it does: pass at least one sample, of "
            "finite numbers"
        )


def chosen(additions: Sequence[Addition], which: Which) -> list[int]:
    """Return the additions that are asked for, by number in order.

    A string names a module: all additions in it and its submodules are meant.
    """
    if which is None:
        return list(range(len(additions)))
    wanted = "are numbers of additions or paths of modules"
    several = not isinstance(which, int | str)
    asked = listed("which", which, wanted) if several else [which]
    found: dict[int, None] = {}
    for one in asked:
        here = _matching(additions, one)
        if not here:
            known = ", ".join(repr(a.module) for a in additions) or "none"
            raise SurgeryError(
                f"which={one!r} names no residual addition, wanted are numbers from 0 "
                f"to {len(additions) - 1} or modules that hold a skip, such as "
                f"{known if len(known) < 80 else known[:77] + '…'}"
                if additions
                else f"which={one!r} names no residual addition, and the network has "
                "none: insert skips first"
            )
        found |= dict.fromkeys(here)
    return sorted(found)


def _matching(additions: Sequence[Addition], one: Any) -> list[int]:
    if isinstance(one, bool) or not isinstance(one, int | str):
        raise ConfigError(
            f"which holds a {type(one).__name__}, wanted are numbers of additions or "
            "paths of modules: pass for instance which=[0, 'layer2']"
        )
    if isinstance(one, int):
        return [one] if 0 <= one < len(additions) else []
    return [
        place
        for place, each in enumerate(additions)
        if one == "" or each.module == one or each.module.startswith(f"{one}.")
    ]


def _copied(model: Any) -> nn.Module:
    """Return a copy that shares nothing with the original."""
    if not isinstance(model, nn.Module):
        raise SurgeryError(
            f"a {type(model).__name__} came, wanted is a torch.nn.Module: pass the "
            "network itself"
        )
    model = getattr(model, "_orig_mod", model)  # what torch.compile has wrapped
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise SurgeryError(
            f"the model cannot be copied ({said}), wanted is one that copy.deepcopy "
            "takes: drop tensors of former runs that it keeps as attributes"
        ) from error
