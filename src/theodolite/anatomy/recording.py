"""One forward pass on paper: calls of operators, values of tensors, visits of modules.

A *value* is what a tensor holds between two writes, so that ``x += y`` and
``relu_(x)`` make new values of the same tensor, and the graph of values has no cycles.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Source = Literal["input", "parameter", "buffer", "constant", "call", "alias"]


class Ref(NamedTuple):
    """Stands for a tensor among the arguments of a call."""

    number: int


@dataclass(frozen=True, kw_only=True)
class Value:
    """What a tensor holds between two writes.

    Attributes:
        number: Its number; a value's number is above those that it was made from.
        shape: Shape of the tensor.
        dtype: Its type, such as ``"float32"``.
        source: Where it comes from: made by a call, met as a leaf, or read through
            another tensor (an alias) of memory that was written to.
        call: The call that made it.
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
    """One call of an operator of torch.

    Attributes:
        index: Its number; the calls of a pass are 0, 1, 2, ….
        operator: Name with overload, such as ``"aten.add.Tensor"``.
        module: Path of the innermost submodule that was running, ``""`` for the model.
        visit: Number of that submodule's visit.
        arguments: Positional arguments, a ``Ref`` for every tensor.
        options: Keyword arguments, likewise.
        inputs: Values read, in order.
        outputs: Values made, in order.
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
        """The operator without library, overload and mark of in-place writing."""
        base = self.operator.split(".")[1]
        return base.rstrip("_") if not base.startswith("__") else base


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One run of a module's forward.

    Attributes:
        index: Its number, in order of entry; 0 is the model itself.
        module: Path of the module, its first if it has several.
        kind: Name of its class.
        parent: The visit that it was entered from, None for the outermost.
        first: Index of the first call made after it was entered.
        stop: Index of the first call made after it was left.
        recurrent: Whether the module is one of torch's recurrent layers or cells.
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
    """All of one forward pass.

    Attributes:
        calls: Calls of operators, in order.
        values: Values of tensors, in order.
        visits: Visits of modules, in order of entry.
        outputs: Values that the model returned.
    """

    calls: tuple[Call, ...]
    values: tuple[Value, ...]
    visits: tuple[Visit, ...]
    outputs: tuple[int, ...]

    def around(self, visit: int | None) -> tuple[int, ...]:
        """List a visit and those that it lies in, innermost first."""
        found = []
        while visit is not None:
            found.append(visit)
            visit = self.visits[visit].parent
        return tuple(found)
