"""One recorded forward pass: operator calls, tensor values, module visits.

A *value* is what a tensor holds between two writes, so that ``x += y`` and
``relu_(x)`` make new values of the same tensor, and the graph of values has no cycles.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Source = Literal["input", "parameter", "buffer", "constant", "call", "alias"]


class Ref(NamedTuple):
    """Stands for a tensor among the arguments of a call, by the number of its value."""

    number: int


@dataclass(frozen=True, kw_only=True)
class Value:
    """What a tensor holds between two writes.

    Attributes:
        number: Its number, above those of the values it was computed from.
        shape: Shape of the tensor.
        dtype: Dtype, such as ``"float32"``.
        source: Where it comes from: a call, a leaf, or an alias, that is another
            tensor of memory that was written to.
        call: The call that computed it.
        name: Name of the parameter or buffer.
        of: The values that an alias reads.
    """

    number: int
    shape: tuple[int, ...]
    dtype: str
    source: Source
    call: int | None = None
    name: str = ""
    of: tuple[int, ...] = ()


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
    """One call of a module's forward.

    Attributes:
        index: Its number, in order of entry; 0 is the model itself.
        module: Path of the module, the first if it has several.
        kind: Name of its class.
        parent: The visit that called it, None for the outermost.
        first: Index of the first operator call inside.
        stop: Index of the first operator call after it.
        recurrent: Whether the module is a recurrent layer or cell of torch.
    """

    index: int
    module: str
    kind: str
    parent: int | None
    first: int
    stop: int
    recurrent: bool = False


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
        """List a visit and all visits around it, innermost first."""
        visits = []
        while visit is not None:
            visits.append(visit)
            visit = self.visits[visit].parent
        return tuple(visits)
