"""The parts of a network by name: additions and their spans, norms, activations."""

from dataclasses import dataclass
from typing import Literal

SpanKind = Literal[
    "identity", "slice", "pad", "pool", "resample", "scale", "norm", "projection",
    "branch",
]  # fmt: skip
Placement = Literal[
    "pre", "inside", "post", "skip", "stem", "between", "final", "after", "plain"
]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A factor on a span, from outside of the signal.

    Attributes:
        call: The call that multiplies.
        by: ``"number"``, ``"parameter"``, ``"buffer"`` or ``"constant"`` (such as
            noise drawn in the run).
        value: The number.
        name: Name of the parameter or buffer.
    """

    call: int
    by: str
    value: float | None = None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A way through the network, from where it forks to where it is added.

    Attributes:
        role: Skip or branch.
        kind: What a skip does; ``"branch"`` for a branch.
        entry: Number of the value at which it starts, the fork.
        exit: Number of the value that is added.
        into: Index of the call that adds it.
        position: Place among that call's arguments.
        sign: 1, or −1 where it is subtracted.
        calls: Indices of the calls on the way from entry to exit, in order.
        modules: Outermost submodules that run on the way, in order.
        layout: What the calls do, in order: ``"linear"``, ``"norm"``, ….
        parameters: Names of the parameters that act on the way.
        scales: Factors behind the last layer.
    """

    role: Literal["skip", "branch"]
    kind: SpanKind
    entry: int
    exit: int
    into: int
    position: int
    sign: float
    calls: tuple[int, ...]
    modules: tuple[str, ...]
    layout: tuple[str, ...]
    parameters: tuple[str, ...]
    scales: tuple[Scale, ...]

    @property
    def first(self) -> int | None:
        """Index of the first call, None if there is none."""
        return self.calls[0] if self.calls else None

    @property
    def last(self) -> int | None:
        """Index of the last call, None if there is none."""
        return self.calls[-1] if self.calls else None


@dataclass(frozen=True, kw_only=True)
class Addition:
    """A residual addition: a skip, and one branch or several.

    Attributes:
        call: Index of the call that adds; of several, the last.
        calls: Indices of all calls that add, in order.
        output: Number of the sum's value.
        module: Path of the submodule that adds.
        fork: Number of the value from which the spans start.
        skip: The short way.
        branches: The others, in order of the arguments.
        inside: Index, among the additions, of the one whose branch this lies in.
    """

    call: int
    calls: tuple[int, ...]
    output: int
    module: str
    fork: int
    skip: Span
    branches: tuple[Span, ...]
    inside: int | None = None


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A norm, by a layer, a function or hand.

    Attributes:
        call: Index of the call; of one written by hand, the division.
        module: Path of the submodule that ran it.
        kind: ``"batch"``, ``"instance"``, ``"layer"``, ``"group"`` or ``"rms"``; by
            hand, as the operators make it.
        placement: Where it stands: first in a branch (pre) or further in (inside),
            behind an addition and before the next fork (post), on a skip, before the
            first fork (stem), between an addition and later layers of the trunk,
            behind the last addition (final); behind the only addition where nothing
            tells post from final (after); in a network without additions (plain).
        addition: Index of the addition that it belongs to.
    """

    call: int
    module: str
    kind: str
    placement: Placement
    addition: int | None


@dataclass(frozen=True, kw_only=True)
class Activation:
    """A nonlinearity.

    Attributes:
        call: Index of the call, the last of one written by hand.
        module: Path of the submodule that ran it.
        kind: Name of the operator, or ``"handwritten"``.
        piecewise_linear: Whether its graph is made of straight pieces.
    """

    call: int
    module: str
    kind: str
    piecewise_linear: bool


@dataclass(frozen=True, kw_only=True)
class Other:
    """What joins tensors in another manner than a residual addition.

    Attributes:
        kind: ``"concatenation"``, ``"scatter"``, ``"gate"``, ``"squeeze-excite"``,
            ``"highway"``, ``"interpolation"``, ``"attention"``, ``"product"``,
            ``"mask"``, ``"recurrence"``, ``"coupling"``, ``"sum of sources"``,
            ``"broadcast sum"`` or ``"fixed map"``.
        call: Index of the call that joins.
        module: Path of the submodule that ran it.
        detail: One phrase that says more.
    """

    kind: str
    call: int
    module: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Unplaced:
    """A sum of which skip and branch cannot be told apart.

    Attributes:
        call: Index of the call that adds.
        module: Path of the submodule that ran it.
        reason: Why.
        operands: Numbers of the values that are added.
    """

    call: int
    module: str
    reason: str
    operands: tuple[int, ...]
