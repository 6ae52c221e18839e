"""The steps of every operation: copy, trace, alter, check."""

import copy
import math
import uuid
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.anatomy import Addition, Anatomy, anatomy_of
from theodolite.core import ConfigError, Exclusive, SurgeryError, TheodoliteError
from theodolite.instruments import Batch

from .altered import ModuleEdit, SumEdit
from .attaching import attach, keep_off_fast_path, replace
from .result import (
    AttachedEdit,
    Change,
    Log,
    PassResult,
    ReplacedModule,
    Result,
    Step,
    WrittenParameter,
    compare,
    forward_backward,
)
from .trace import Trace, trace_run

Which = int | str | Sequence[int | str] | None
# Tolerance for outputs that must not change, relative to the largest output.
SAME = 1e-6


class Operation:
    """A copy of a model that is being altered.

    Args:
        name: Name of the operation.
        model: The original, which is not changed.
        batch: Batch that the model runs on.
        evaluate: Put the copy into eval mode.

    Attributes:
        model: The copy.
        trace: One run of the unchanged copy.
        anatomy: The parts of the unchanged copy.
    """

    def __init__(
        self, name: str, model: nn.Module, batch: Batch, *, evaluate: bool = False
    ) -> None:
        self.name, self.batch = name, batch
        self.model = _copied(model)
        self._modes = [(module, module.training) for module in self.model.modules()]
        if evaluate:
            self.model.eval()
        self.trace: Trace = trace_run(self.model, batch)
        self.anatomy: Anatomy = anatomy_of(self.trace.recording)
        self._steps: list[Step] = []
        self._changes: list[Change] = []
        self._before: PassResult = forward_backward(self.model, batch)
        outputs = self._before.outputs
        empty = bool(outputs) and not any(output.numel() for output in outputs)
        if empty or any(bool(output.isnan().any()) for output in outputs):
            raise SurgeryError(
                f"the network returns {'no numbers' if empty else 'NaN'} on the batch, "
                "wanted is one that shows what it does: pass at least one sample, of "
                "finite numbers"
            )

    def note(self, module: str, what: str, before: str, after: str) -> None:
        """Note a change in the log."""
        self._changes.append(
            Change(module=module, what=what, before=before, after=after)
        )

    def leave(self, module: str, what: str, before: str, reason: object) -> None:
        """Note in the log a change that could not be made."""
        self._changes.append(
            Change(
                module=module, what=what, before=before, after=str(reason), done=False
            )
        )

    def attach(
        self,
        path: str,
        edit: SumEdit | ModuleEdit,
        extras: Mapping[str, nn.Parameter | nn.Module] | None = None,
    ) -> None:
        """Add an edit to a module."""
        extras = extras or {}
        attach(self.model, path, edit, extras)
        self._steps.append(
            AttachedEdit(path=path, label=edit.label, extras=tuple(extras))
        )

    def replace(self, path: str, new: nn.Module) -> nn.Module:
        """Replace a module, and return the old one."""
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
        keep_off_fast_path(new)
        self._steps.append(ReplacedModule(path=path, old=old))
        return old

    def write(self, name: str, numbers: Tensor) -> None:
        """Write numbers into a parameter."""
        parameter = self.model.get_parameter(name)
        self._steps.append(WrittenParameter(name=name, old=parameter.detach().clone()))
        with torch.no_grad():
            parameter.copy_(numbers)

    def label(self) -> str:
        """Return a unique name for an edit."""
        return f"{self.name}-{uuid.uuid4().hex}"

    def finish(self, *, unchanged: bool = False, none: str = "") -> Result:
        """Run the altered copy, and return it with its log and its check.

        Args:
            unchanged: Whether outputs must stay the same.
            none: Error message if nothing was changed.
        """
        log = Log(operation=self.name, changes=tuple(self._changes))
        if not log.done:
            raise SurgeryError(log.left[0].after if log.left else none)
        check = compare(self._before, self._run())
        kinds = [output.dtype for output in self._before.outputs]
        tolerance = max([SAME, *(32 * torch.finfo(kind).eps for kind in kinds)])
        if unchanged and not check.change <= tolerance:
            raise SurgeryError(
                f"outputs changed by {check.change:.1e} of the largest, wanted is at "
                f"most {tolerance:.0e}: convert the model to float64, or put "
                "it into eval mode"
            )
        for module, mode in self._modes:
            module.training = mode
        return Result(model=self.model, log=log, check=check, steps=tuple(self._steps))

    def _run(self) -> PassResult:
        try:
            return forward_backward(self.model, self.batch)
        except TheodoliteError as error:
            raise SurgeryError(f"the altered network does not run: {error}") from error
        except Exception as error:  # anything that the forward raises
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise SurgeryError(
                f"the altered network does not run ({said}), wanted are parts that its "
                "code can do without: alter fewer of them"
            ) from error


def check_scale(scale: Any, name: str = "scale") -> None:
    """Raise if a factor is not a finite number."""
    if not math.isfinite(scale):
        raise ConfigError(f"{name} must be finite, got {scale!r}")


def selected(additions: Sequence[Addition], which: Which) -> list[int]:
    """Return the numbers of the chosen additions, in order.

    A string names a module and selects all additions in it and its submodules.
    """
    if which is None:
        return list(range(len(additions)))
    asked = [which] if isinstance(which, int | str | Integral) else list(which)
    numbers: dict[int, None] = {}
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
        numbers |= dict.fromkeys(here)
    return sorted(numbers)


def _matching(additions: Sequence[Addition], one: Any) -> list[int]:
    if not isinstance(one, str):
        return [one] if 0 <= one < len(additions) else []
    return [
        place
        for place, each in enumerate(additions)
        if one == "" or each.module == one or each.module.startswith(f"{one}.")
    ]


def _copied(model: Any) -> nn.Module:
    """Return a copy that shares nothing with the original."""
    model = getattr(model, "_orig_mod", model)  # wrapped by torch.compile
    try:
        with Exclusive():
            return copy.deepcopy(model)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise SurgeryError(
            f"the model cannot be copied ({said}), wanted is one that copy.deepcopy "
            "takes: drop tensors of former runs that it keeps as attributes"
        ) from error
