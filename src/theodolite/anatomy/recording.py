"""One recorded forward pass: operator calls, tensor values, module visits.

A *value* is what a tensor holds between two writes, so that ``x += y`` and
``relu_(x)`` make new values of the same tensor, and the graph of values has no cycles.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Source = Literal["input", "parameter", "buffer", "constant", "call", "alias"]


class Ref(NamedTuple):
    """Reference to a tensor argument of a call, by the number of its value."""

    number: int


@dataclass(frozen=True, kw_only=True)
class Value:
    """What a tensor holds between two writes."""

    number: int  # its number, above those of the values it was computed from
    shape: tuple[int, ...]  # shape of the tensor
    dtype: str  # dtype, such as ``"float32"``
    # Its origin: a call, a leaf, or an alias, which is another tensor that shares
    # memory with a tensor that was written to.
    source: Source
    call: int | None = None  # the call that computed it
    name: str = ""  # name of the parameter or buffer
    of: tuple[int, ...] = ()  # the values that an alias reads


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a torch operator.

    Attributes:
        index: Its number; the calls of a pass are 0, 1, 2, ….
        operator: Name with overload, such as ``"aten.add.Tensor"``.
        module: Path of the innermost submodule that was running, ``""`` for the model.
        visit: Number of that submodule's visit.
        arguments: Positional arguments, with a ``Ref`` for every tensor.
        options: Keyword arguments, with the same.
        inputs: Values that it reads, in order.
        outputs: Values that it computes, in order.
    """

    index: int
    operator: str
    module: str
    visit: int
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The operator without library, overload and in-place underscore."""
        base = self.operator.split(".")[1]
        return base.rstrip("_") if not base.startswith("__") else base


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One call of a module's forward."""

    index: int  # its number, in order of entry; 0 is the model itself
    module: str  # path of the module, the first if it has several
    kind: str  # name of its class
    parent: int | None  # the visit that called it, None for the outermost
    first: int  # index of the first operator call inside
    stop: int  # index of the first operator call after it
    recurrent: bool = False  # whether the module is a recurrent layer or cell of torch


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One forward pass.

    Attributes:
        calls: Operator calls, in order.
        values: Tensor values, in order.
        visits: Module visits, in order of entry.
        outputs: Values that the model returned.
    """

    calls: tuple[Call, ...]
    values: tuple[Value, ...]
    visits: tuple[Visit, ...]
    outputs: tuple[int, ...]

    def around(self, visit: int | None) -> tuple[int, ...]:
        """Return a visit and all visits around it, innermost first."""
        visits = []
        while visit is not None:
            visits.append(visit)
            visit = self.visits[visit].parent
        return tuple(visits)
