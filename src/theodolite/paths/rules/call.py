"""One call of an operator, with its arguments by name and its tracked operands."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..tape import LinearMap

Slot = tuple[str, int | None]


@dataclass(frozen=True, eq=False)
class Frozen:
    """Mark of a tensor without a polynomial: its value is held constant."""

    op: str  # the operator that is not piecewise linear
    statistic: bool  # whether it may be the statistic of a hand-written norm


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearPiece:
    """The result of a rule for one output of a call."""

    map: LinearMap  # linear in the tracked operands
    slots: tuple[Slot, ...]  # their positions among the arguments
    constant: Tensor | None = None  # what is added to them
    gated: bool = False  # whether the output is that of a smooth gate


RuleResult = LinearPiece | Frozen | None


@dataclass(kw_only=True, eq=False)
class Call:
    """A call: operator, arguments, and which of them are tracked.

    Attributes:
        func: The operator that does not write in place.
        name: Its name, without the underscore of in-place operators.
        arguments: By the names of the schema, defaults filled in.
        tensors: Every tensor among them, by slot, as it was before the call.
        live: Slots of operands with polynomials.
        gated: Slots of operands that are outputs of smooth gates.
        outputs: What the call returned, flat.
        several: Whether it returned more than one.
        linearise: Whether smooth gates may be frozen.
    """

    func: Any
    name: str
    arguments: dict[str, Any]
    tensors: dict[Slot, Tensor]
    live: tuple[Slot, ...]
    gated: tuple[Slot, ...] = ()
    outputs: list[Any] = field(default_factory=list)
    several: bool = False
    linearise: bool = False

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument, as a number where it is one."""
        return self.arguments.get(name, default)

    def is_live(self, name: str) -> bool:
        """Return whether a tensor argument is tracked."""
        return (name, None) in self.live

    def floats(self) -> tuple[Slot, ...]:
        """Return the slots of constant tensors of real numbers."""
        return tuple(
            slot
            for slot, tensor in self.tensors.items()
            if tensor.is_floating_point() and slot not in self.live
        )

    def shapes(self, slots: tuple[Slot, ...]) -> tuple[torch.Size, ...]:
        """Return the shapes of some operands."""
        return tuple(self.tensors[slot].shape for slot in slots)

    def function(
        self,
        slots: tuple[Slot, ...],
        *,
        fixed: Mapping[Slot, Any] | None = None,
        place: int = 0,
        func: Any = None,
    ) -> Callable[..., Tensor]:
        """Return one output as a function of some operands, the others fixed."""
        chosen, several = func or self.func, self.several
        given = dict(self.arguments)
        for slot in slots:  # their true values are no part of the function
            _place(given, slot, None)
        for slot, value in (fixed or {}).items():
            _place(given, slot, value)
        names = [a for a in chosen._schema.arguments if a.name in given]

        def run(*operands: Tensor) -> Tensor:
            filled = dict(given)
            for slot, operand in zip(slots, operands, strict=True):
                _place(filled, slot, operand)
            args = [filled[a.name] for a in names if not a.kwarg_only]
            kwargs = {a.name: filled[a.name] for a in names if a.kwarg_only}
            result = chosen(*args, **kwargs)
            return result[place] if several else result

        return run


def _place(arguments: dict[str, Any], slot: Slot, value: Any) -> None:
    name, index = slot
    if index is None:
        arguments[name] = value
        return
    parts = list(arguments[name])
    parts[index] = value
    arguments[name] = parts


def bind(func: Any, args: tuple, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, with the defaults of the schema."""
    names = [argument.name for argument in func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    for argument in func._schema.arguments:
        if argument.name not in given and argument.has_default_value():
            given[argument.name] = argument.default_value
    return given


def slots_in(arguments: Mapping[str, Any]) -> Iterator[tuple[Slot, Tensor]]:
    """Yield every tensor among arguments, alone or in a list."""
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            yield (name, None), value
        elif isinstance(value, list | tuple):
            for index, part in enumerate(value):
                if isinstance(part, Tensor):
                    yield (name, index), part
