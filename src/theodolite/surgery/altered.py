"""Modules that run their own forward, with some of its sums changed.

An altered module keeps its parameters, their names and its forward. Its class is
derived from its own, as torch's parametrisations do, so that code that asks for its
type still gets its answer. While its forward runs, a mode that sees every function of
torch counts the sums that the forward itself makes, and puts edits on the operands or
the result of those that are marked; sums inside submodules do not count, since hooks
tell when one is entered and left. All of it is plain Python that ``torch.compile``
traces, and ``deepcopy`` and ``pickle`` carry along.
"""

import copyreg
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from theodolite.core import SurgeryError
from theodolite.surgery.edits import Edit
from theodolite.surgery.torch_sums import TorchSum, read_sum

Key = int | str
_ELSEWHERE = (
    "an altered module makes other sums in this run than when it was altered, wanted "
    "are the same: alter it in the mode in which it will run, with a batch of the kind "
    "that it will get"
)
_OVERWRITTEN = (
    "the tensor from which a skip starts is written over before the sum, wanted is one "
    "that keeps its numbers: make the first step of the branch not in-place"
)
RESULT = -1  # the place of an edit that acts on the sum itself


@dataclass(frozen=True, kw_only=True)
class Tap:
    """Where a forward holds a tensor that an edit needs.

    Attributes:
        kind: ``"input"`` of the module, what a ``"function"`` gave, or what a submodule
            was ``"given"`` or ``"gave"``.
        name: Of the function, or path of the submodule.
        ordinal: Which call of it.
        key: Place or keyword among the arguments, place among the results.
    """

    kind: str
    name: str = ""
    ordinal: int = 0
    key: Key = 0

    @property
    def label(self) -> str:
        """A name that no other tap has."""
        return f"{self.kind}:{self.name}:{self.ordinal}:{self.key}"


@dataclass(kw_only=True, eq=False)
class SumEdit:
    """An edit on an operand or the result of a sum.

    Attributes:
        label: Unique name, by which it is taken out again.
        ordinal: Which sum of the forward.
        place: Which operand, or ``RESULT``.
        edit: What is done to it.
        after: How many submodules have run before that sum, and which last.
        tap: The tensor that it reads besides.
    """

    label: str
    ordinal: int
    place: int
    edit: Edit
    after: tuple[int, str]
    tap: Tap | None = None


@dataclass(kw_only=True, eq=False)
class VisitEdit:
    """An edit on what a module is given, or on what it gives.

    Attributes:
        label: Unique name, by which it is taken out again.
        before: Whether it acts on arguments, else on the result.
        keys: Which arguments it acts on or reads.
        edit: What is done.
        keep: Whether the module writes over the argument, so that it must be copied.
    """

    label: str
    before: bool
    keys: tuple[Key, ...]
    edit: Edit
    keep: bool = False


class Clock:
    """How many submodules deep a run is, what it has run, and what taps hold."""

    def __init__(self) -> None:
        self.depth = 0
        self.ran: tuple[int, str] = (0, "")
        self.held: dict[str, Tensor] = {}
        self.versions: dict[str, int] = {}

    def hold(self, tap: Tap, value: Tensor) -> None:
        """Keep a tensor for an edit further on."""
        self.held[tap.label] = value
        if not torch.compiler.is_compiling():
            self.versions[tap.label] = version_of(value)

    def overwritten(self, tap: Tap) -> bool:
        """Tell whether a tensor was written to since it was kept."""
        return self.versions[tap.label] != version_of(self.held[tap.label])


def version_of(tensor: Tensor) -> int:
    """Count the writes to a tensor, if torch does."""
    return 0 if tensor.is_inference() else tensor._version


@dataclass(kw_only=True, eq=False)
class Plan:
    """All that is changed in one module."""

    sums: list[SumEdit] = field(default_factory=list)
    visits: list[VisitEdit] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)

    def taps(self, kind: str) -> list[Tap]:
        """List the tensors of one kind that edits read."""
        found = [each.tap for each in self.sums if each.tap is not None]
        return [tap for tap in found if tap.kind == kind]


class Altered(nn.Module):
    """Mixed into the class of a module; runs its forward under a plan."""

    surgery_plan: Plan
    surgery_base: type[nn.Module]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward with its edits."""
        plan = self.surgery_plan
        reads = [_read(each, args, kwargs) for each in plan.visits]
        given, named = _given(self, plan, args, kwargs)
        if plan.sums:
            clock = plan.clock
            kept = clock.depth, clock.ran, clock.held
            clock.depth, clock.ran = 0, (0, "")
            clock.held = {}
            _hold_inputs(plan, given, named)
            try:
                counting = _Counting(self)
                with counting:
                    result = super().forward(*given, **named)
                counting.finish()
            finally:
                clock.depth, clock.ran, clock.held = kept
        else:
            result = super().forward(*given, **named)
        for each, read in zip(plan.visits, reads, strict=True):
            if not each.before:
                result = each.edit(self, result, read)
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        made = super().__reduce_ex__(protocol)
        assert isinstance(made, tuple)
        return (_blank, (self.surgery_base,), *made[2:])


def _read(each: VisitEdit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the argument that an edit reads, as it came."""
    key = each.keys[0]
    value = args[key] if isinstance(key, int) else kwargs[key]
    return value.clone() if each.keep else value


def _given(
    module: nn.Module, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments, edited."""
    given, named = list(args), dict(kwargs)
    for each in plan.visits:
        if each.before:
            first = each.keys[0]
            came = given[first] if isinstance(first, int) else named[first]
            changed = each.edit(module, came, None)
            for key in each.keys:
                if isinstance(key, int):
                    given[key] = changed
                else:
                    named[key] = changed
    return tuple(given), named


def _hold_inputs(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for tap in plan.taps("input"):
        given = args[tap.key] if isinstance(tap.key, int) else kwargs[tap.key]
        plan.clock.hold(tap, given)


class _Counting(TorchFunctionMode):
    """Counts the sums of a forward, and puts edits on them."""

    def __init__(self, module: Altered) -> None:
        super().__init__()
        self._module = module
        self._sums = 0
        self._others: dict[str, int] = {}
        self._tapped = module.surgery_plan.taps("function")

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._module.surgery_plan.clock.depth > 0:
            return func(*args, **kwargs)
        found = read_sum(func, args, kwargs)
        if found is not None:
            ordinal = self._sums
            self._sums = ordinal + 1
            result = self._add(ordinal, func, found, args, kwargs)
            return self._held("sum", ordinal, result)
        name = getattr(func, "__name__", "")
        result = func(*args, **kwargs)
        if any(tap.name == name for tap in self._tapped):
            ordinal = self._others.get(name, 0)
            self._others[name] = ordinal + 1
            self._held(name, ordinal, result)
        return result

    def _add(
        self, ordinal: int, func: Any, found: TorchSum, args: Any, kwargs: Any
    ) -> Any:
        edits = [e for e in self._module.surgery_plan.sums if e.ordinal == ordinal]
        if not edits:
            return func(*args, **kwargs)
        if edits[0].after != self._module.surgery_plan.clock.ran:
            raise SurgeryError(_ELSEWHERE)
        operands = list(found.operands)
        for each in edits:
            if each.place != RESULT:
                value = operands[each.place]
                written = found.in_place and each.place == 0
                operands[each.place] = self._edited(each, value, written)
        result = func(*operands, **found.options)
        for each in edits:
            if each.place == RESULT:
                result = self._edited(each, result, found.in_place)
        return result

    def finish(self) -> None:
        """Refuse a run in which an edit found no sum."""
        if any(each.ordinal >= self._sums for each in self._module.surgery_plan.sums):
            raise SurgeryError(_ELSEWHERE)

    def _edited(self, each: SumEdit, value: Tensor, written: bool) -> Tensor:
        """Edit a value; one that the sum writes to is written over itself."""
        clock, tap, beside = self._module.surgery_plan.clock, each.tap, None
        if tap is not None:
            beside = clock.held[tap.label]
            if not torch.compiler.is_compiling() and clock.overwritten(tap):
                raise SurgeryError(_OVERWRITTEN)
        if not written:
            return each.edit(self._module, value, beside)
        # What is written to must not be what the edit keeps for its derivative.
        return value.copy_(each.edit(self._module, value.clone(), beside))

    def _held(self, name: str, ordinal: int, result: Any) -> Any:
        for tap in self._tapped:
            if tap.name == name and tap.ordinal == ordinal:
                self._module.surgery_plan.clock.hold(tap, result)
        return result


class Mark:
    """Hook that does nothing: with hooks, torch's fused layers run their submodules."""

    def __call__(self, module: nn.Module, args: Any) -> None:
        """Do nothing."""


class Enter:
    """Hook that tells a clock of a submodule's start."""

    def __init__(self, plan: Plan, path: str) -> None:
        self.plan, self.clock, self.path = plan, plan.clock, path

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Go one deeper."""
        if self.clock.depth == 0:
            for tap in self.plan.taps("given"):
                if tap.name == self.path:
                    given = args if isinstance(tap.key, int) else kwargs
                    self.clock.hold(tap, given[tap.key])
        self.clock.depth += 1


class Leave:
    """Hook that tells a clock of a submodule's end."""

    def __init__(self, plan: Plan, path: str) -> None:
        self.plan, self.clock, self.path = plan, plan.clock, path

    def __call__(self, module: nn.Module, args: Any, result: Any) -> None:
        """Come one up."""
        self.clock.depth -= 1
        if self.clock.depth == 0:
            self.clock.ran = (self.clock.ran[0] + 1, self.path)
            for tap in self.plan.taps("gave"):
                if tap.name == self.path:
                    self.clock.hold(tap, result)


@cache
def altered_kind(base: type[nn.Module]) -> type[Altered]:
    """Return the altered class of a class of modules; always the same."""
    name = f"Altered{base.__name__}"
    members = {"surgery_base": base, "__module__": base.__module__}
    return type(name, (Altered, base), members)


def _blank(base: type[nn.Module]) -> nn.Module:
    """Make an altered module without contents, for those who copy and unpickle."""
    return copyreg.__newobj__(altered_kind(base))  # pyright: ignore
