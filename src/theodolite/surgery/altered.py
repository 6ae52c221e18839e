"""Modules that run their own forward, with some of its sums changed.

An altered module keeps its parameters, their names and its forward. Its new class is
a subclass of the old one, as in torch's parametrisations, so that ``isinstance`` still
works. While its forward runs, a listener counts the sums that the forward itself makes,
and puts edits on the operands or the result of those that are marked; sums inside
submodules do not count, since hooks tell when one is entered and left. All of it is
plain Python that ``torch.compile`` traces, and ``deepcopy`` and ``pickle`` carry along.
"""

import copyreg
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import SurgeryError
from theodolite.instruments import Listener

from .edits import Edit, TorchSum, read_sum

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
RESULT = -1  # position of an edit that acts on the sum itself


@dataclass(frozen=True, kw_only=True)
class TensorSource:
    """Where a forward holds a tensor that an edit reads."""

    # ``"input"`` of the module, output of a ``"function"``, or argument (``"given"``)
    # or output (``"gave"``) of a submodule.
    kind: str
    name: str = ""  # of the function, or path of the submodule
    ordinal: int = 0  # which call of it
    key: Key = 0  # index or keyword of the argument, or index of the result

    @property
    def label(self) -> str:
        """A unique name."""
        return f"{self.kind}:{self.name}:{self.ordinal}:{self.key}"


@dataclass(kw_only=True, eq=False)
class SumEdit:
    """An edit on an operand or the result of a sum."""

    label: str  # unique name, by which it is taken out again
    ordinal: int  # which sum of the forward
    place: int  # which operand, or ``RESULT``
    edit: Edit  # what is done to it
    # How many submodules have run before that sum, and the last of them.
    after: tuple[int, str]
    source: TensorSource | None = None  # another tensor that it reads


@dataclass(kw_only=True, eq=False)
class ModuleEdit:
    """An edit of the arguments of a module, or of its result."""

    label: str  # unique name, by which it is taken out again
    before: bool  # whether it acts on arguments, else on the result
    keys: tuple[Key, ...]  # which arguments it acts on or reads
    edit: Edit  # what is done
    # Whether the module writes over the argument, so that it must be copied.
    keep: bool = False


class RunState:
    """State of one forward pass: depth of submodules, submodules run, tensors kept."""

    def __init__(self) -> None:
        self.depth = 0
        self.ran: tuple[int, str] = (0, "")
        self.held: dict[str, Tensor] = {}
        self.versions: dict[str, int] = {}

    def hold(self, source: TensorSource, value: Tensor) -> None:
        """Keep a tensor for a later edit."""
        self.held[source.label] = value
        if not torch.compiler.is_compiling():
            self.versions[source.label] = version_of(value)

    def overwritten(self, source: TensorSource) -> bool:
        """Return whether a tensor was overwritten since it was kept."""
        return self.versions[source.label] != version_of(self.held[source.label])


def version_of(tensor: Tensor) -> int:
    """Return how often a tensor was written to, if torch counts it."""
    return 0 if tensor.is_inference() else tensor._version


@dataclass(kw_only=True, eq=False)
class ModuleEdits:
    """All edits of one module."""

    sums: list[SumEdit] = field(default_factory=list)
    visits: list[ModuleEdit] = field(default_factory=list)
    state: RunState = field(default_factory=RunState)

    def sources(self, kind: str) -> list[TensorSource]:
        """List the tensors of one kind that edits read."""
        sources = [each.source for each in self.sums if each.source is not None]
        return [source for source in sources if source.kind == kind]


class Altered(nn.Module):
    """Mixin for the class of a module; runs its forward with edits."""

    surgery_edits: ModuleEdits
    surgery_base: type[nn.Module]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward with its edits."""
        edits = self.surgery_edits
        reads = [_read(each, args, kwargs) for each in edits.visits]
        given, named = _given(self, edits, args, kwargs)
        if edits.sums:
            state = edits.state
            kept = state.depth, state.ran, state.held
            state.depth, state.ran = 0, (0, "")
            state.held = {}
            for source in edits.sources("input"):
                key = source.key
                value = given[key] if isinstance(key, int) else named[key]
                state.hold(source, value)
            try:
                counting = _Counting(self)
                with counting:
                    result = super().forward(*given, **named)
                counting.finish()
            finally:
                state.depth, state.ran, state.held = kept
        else:
            result = super().forward(*given, **named)
        for each, read in zip(edits.visits, reads, strict=True):
            if not each.before:
                result = each.edit(self, result, read)
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        made = super().__reduce_ex__(protocol)
        assert isinstance(made, tuple)
        return (_blank, (self.surgery_base,), *made[2:])


def _read(each: ModuleEdit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the argument that an edit reads, unchanged."""
    key = each.keys[0]
    value = args[key] if isinstance(key, int) else kwargs[key]
    return value.clone() if each.keep else value


def _given(
    module: nn.Module, edits: ModuleEdits, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments, edited."""
    given, named = list(args), dict(kwargs)
    for each in edits.visits:
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


class _Counting(Listener):
    """Counts the sums of a forward, and puts edits on them."""

    def __init__(self, module: Altered) -> None:
        self._module = module
        self._sums = 0
        self._others: dict[str, int] = {}
        self._read_functions = module.surgery_edits.sources("function")

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        if self._module.surgery_edits.state.depth > 0:
            return function(*args, **kwargs)
        torch_sum = read_sum(function, args, kwargs)
        if torch_sum is not None:
            ordinal = self._sums
            self._sums = ordinal + 1
            result = self._add(ordinal, function, torch_sum, args, kwargs)
            return self._held("sum", ordinal, result)
        name = getattr(function, "__name__", "")
        result = function(*args, **kwargs)
        if any(source.name == name for source in self._read_functions):
            ordinal = self._others.get(name, 0)
            self._others[name] = ordinal + 1
            self._held(name, ordinal, result)
        return result

    def _add(
        self, ordinal: int, func: Any, torch_sum: TorchSum, args: Any, kwargs: Any
    ) -> Any:
        edits = [e for e in self._module.surgery_edits.sums if e.ordinal == ordinal]
        if not edits:
            return func(*args, **kwargs)
        if edits[0].after != self._module.surgery_edits.state.ran:
            raise SurgeryError(_ELSEWHERE)
        operands = list(torch_sum.operands)
        for each in edits:
            if each.place != RESULT:
                value = operands[each.place]
                written = torch_sum.in_place and each.place == 0
                operands[each.place] = self._edited(each, value, written)
        result = func(*operands, **torch_sum.options)
        for each in edits:
            if each.place == RESULT:
                result = self._edited(each, result, torch_sum.in_place)
        return result

    def finish(self) -> None:
        """Raise if the run did not reach the sum of an edit."""
        if any(each.ordinal >= self._sums for each in self._module.surgery_edits.sums):
            raise SurgeryError(_ELSEWHERE)

    def _edited(self, each: SumEdit, value: Tensor, written: bool) -> Tensor:
        """Return an edited value; if the sum writes to it, change it in place."""
        state, source, beside = self._module.surgery_edits.state, each.source, None
        if source is not None:
            beside = state.held[source.label]
            if not torch.compiler.is_compiling() and state.overwritten(source):
                raise SurgeryError(_OVERWRITTEN)
        if not written:
            return each.edit(self._module, value, beside)
        # Autograd may have saved the edit's input, so it must not be overwritten.
        return value.copy_(each.edit(self._module, value.clone(), beside))

    def _held(self, name: str, ordinal: int, result: Any) -> Any:
        for source in self._read_functions:
            if source.name == name and source.ordinal == ordinal:
                self._module.surgery_edits.state.hold(source, result)
        return result


class NoFastPathHook:
    """Hook that does nothing: with hooks, torch's fused layers run their submodules."""

    def __call__(self, module: nn.Module, args: Any) -> None:
        """Do nothing."""


class EnterHook:
    """Hook that counts the start of a submodule."""

    def __init__(self, edits: ModuleEdits, path: str) -> None:
        self.edits, self.state, self.path = edits, edits.state, path

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Increase the depth by one."""
        if self.state.depth == 0:
            for source in self.edits.sources("given"):
                if source.name == self.path:
                    given = args if isinstance(source.key, int) else kwargs
                    self.state.hold(source, given[source.key])
        self.state.depth += 1


class LeaveHook:
    """Hook that counts the end of a submodule."""

    def __init__(self, edits: ModuleEdits, path: str) -> None:
        self.edits, self.state, self.path = edits, edits.state, path

    def __call__(self, module: nn.Module, args: Any, result: Any) -> None:
        """Decrease the depth by one."""
        self.state.depth -= 1
        if self.state.depth == 0:
            self.state.ran = (self.state.ran[0] + 1, self.path)
            for source in self.edits.sources("gave"):
                if source.name == self.path:
                    self.state.hold(source, result)


@cache
def altered_class(base: type[nn.Module]) -> type[Altered]:
    """Return the altered subclass of a module class; it is made once."""
    name = f"Altered{base.__name__}"
    members = {"surgery_base": base, "__module__": base.__module__}
    return type(name, (Altered, base), members)


def _blank(base: type[nn.Module]) -> nn.Module:
    """Return an altered module without contents, for copy and pickle."""
    return copyreg.__newobj__(altered_class(base))  # pyright: ignore
