"""The parts of a network: additions and their spans, norms, activations, others."""

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
    """A factor on a span that does not depend on the signal.

    Attributes:
        call: The call that multiplies.
        by: ``"number"``, ``"parameter"``, ``"buffer"`` or ``"constant"``, such as
            noise drawn in the run.
        value: The number.
        name: Name of the parameter or buffer.
    """

    call: int
    by: str
    value: float | None = None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A skip or a branch: all calls from its fork to the addition.

    Attributes:
        role: Skip or branch.
        kind: What a skip does; ``"branch"`` for a branch.
        entry: Number of the value at which it starts, the fork.
        exit: Number of the value that is added.
        into: Index of the call that adds it.
        position: Index among that call's arguments.
        sign: 1, or −1 where it is subtracted.
        calls: Indices of the calls from entry to exit, in order.
        modules: Outermost submodules that run on it, in order.
        layout: What the calls do, in order: ``"linear"``, ``"norm"``, ….
        parameters: Names of its parameters.
        scales: Factors after the last layer.
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


@dataclass(frozen=True, kw_only=True)
class Addition:
    """A residual addition: a skip, and one or more branches.

    Attributes:
        call: Index of the call that adds, the last of several.
        calls: Indices of all calls that add, in order.
        output: Number of the sum's value.
        module: Path of the submodule that adds.
        fork: Number of the value from which the spans start.
        skip: The skip.
        branches: The branches, in order of the arguments.
        inside: Index of the addition in whose branch this one lies.
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
    """A normalisation: a layer, a function, or operators written by hand.

    Attributes:
        call: Index of the call; for a handwritten norm, of the division.
        module: Path of the submodule that ran it.
        kind: ``"batch"``, ``"instance"``, ``"layer"``, ``"group"`` or ``"rms"``.
        placement: Its position: first in a branch (pre) or further in (inside),
            after an addition and before the next fork (post), on a skip, before the
            first fork (stem), between an addition and later layers of the trunk,
            after the last addition (final); after the only addition where nothing
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
        call: Index of the call; for a handwritten activation, of the last one.
        module: Path of the submodule that ran it.
        kind: Name of the operator, or ``"handwritten"``.
        piecewise_linear: Whether it is piecewise linear.
    """

    call: int
    module: str
    kind: str
    piecewise_linear: bool


@dataclass(frozen=True, kw_only=True)
class Other:
    """An operation, other than a residual addition, that joins tensors.

    Attributes:
        kind: ``"concatenation"``, ``"scatter"``, ``"gate"``, ``"squeeze-excite"``,
            ``"highway"``, ``"interpolation"``, ``"attention"``, ``"product"``,
            ``"mask"``, ``"recurrence"``, ``"coupling"``, ``"sum of sources"``,
            ``"broadcast sum"`` or ``"fixed map"``.
        call: Index of the call that joins.
        module: Path of the submodule that ran it.
        detail: A phrase that says more.
    """

    kind: str
    call: int
    module: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Unplaced:
    """A sum whose skip and branch look alike, or an unknown operator.

    Attributes:
        call: Index of the call.
        module: Path of the submodule that ran it.
        reason: Why it could not be placed.
        operands: Numbers of its operands.
    """

    call: int
    module: str
    reason: str
    operands: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of the network.

    Attributes:
        index: Its position in order of depth, from 0.
        name: Path of the module that adds, such as ``layer1.0``. If one module adds
            several times: the path of the branch. If that is the same too: ``path#1``,
            ``path#2``. Never ``whole``.
        kind: ``"residual"``, ``"plain"``, ``"stem"`` or ``"head"``.
        skip: What the skip does (``"identity"``, ``"projection"``, …), or ``""``.
        norms: Norms as ``kind:placement``, such as ``"batch:pre"``.
        activations: Names of its nonlinearities.
        n_parameters: Number of its parameters, including those of submodules.
        addition: Index among the additions of its anatomy, None if it adds nothing.
    """

    index: int
    name: str
    kind: str
    skip: str = ""
    norms: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()
    n_parameters: int = 0
    addition: int | None = None
