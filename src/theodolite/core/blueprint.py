"""One description of an architecture, read by theory and built by networks."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from theodolite.core.errors import ConfigError, unknown_name

Initialisation = Literal["zero", "small", "xavier", "orthogonal"]
Position = Literal["pre", "mid", "post"]

ACTIVATIONS = (
    "identity",
    "relu",
    "tanh",
    "symmetric_sigmoid",
    "silu",
    "exp",
    "polynomial",
)


def parse_activation(spec: str) -> tuple[str, tuple[float, ...]]:
    """Split ``name`` or ``name:a,b`` into a known name and its coefficients.

    Only ``polynomial`` takes coefficients: those of z, z², …, so that it is 0 at 0.

    Example:
        >>> parse_activation("polynomial:1.5,1")
        ('polynomial', (1.5, 1.0))
    """
    if not isinstance(spec, str):
        raise ConfigError(
            f"activation {spec!r} is not a string: write for instance 'tanh'"
        )
    name, colon, rest = spec.partition(":")
    if name not in ACTIVATIONS:
        raise unknown_name("activation", name, ACTIVATIONS)
    try:
        coefficients = tuple(float(part) for part in rest.split(",")) if colon else ()
    except ValueError:
        coefficients = (math.nan,)
    wanted = name == "polynomial"
    if wanted != bool(colon) or not all(map(math.isfinite, coefficients)):
        raise ConfigError(
            f"activation {spec!r}: polynomial takes numbers after a colon, others "
            "take none; write for instance 'polynomial:1.5,1' or 'tanh'"
        )
    return name, coefficients


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    r"""An n-shortcut network, or the plain network with the same layers.

    A unit of ``shortcut`` weight matrices computes
    $x + \sigma_{post}(W_n\,\sigma_{mid}(\dots W_1\,\sigma_{pre}(x)))$; without
    ``skip`` the identity is left out. ``bias`` adds a vector after every matrix of a
    unit but its last, as in the two-layer unit $x + W_2\,\sigma(W_1 x + b)$.

    Attributes:
        width: Dimension of input, output and every layer.
        depth: Number of weight matrices, a multiple of ``shortcut``.
        shortcut: Weight matrices a unit, the paper's n.
        skip: Whether units have the identity path.
        pre: Activation before the first matrix of a unit.
        mid: Activation between two matrices of a unit.
        post: Activation after the last matrix of a unit.
        bias: Whether units have biases.
        init: How ``networks.build`` draws the weights.
        init_scale: Factor on Xavier weights under ``small``.

    References:
        Li et al. (2016), Demystifying ResNet, definitions 1 and 2.

    Example:
        >>> Blueprint(width=10, depth=16, shortcut=2).units
        8
    """

    width: int
    depth: int
    shortcut: int = 2
    skip: bool = True
    pre: str = "identity"
    mid: str = "identity"
    post: str = "identity"
    bias: bool = False
    init: Initialisation = "small"
    init_scale: float = 0.01

    def __post_init__(self) -> None:
        for name in ("width", "depth", "shortcut"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} is {value!r}: pass a whole number from 1 up")
        if self.depth % self.shortcut:
            near = self.depth - self.depth % self.shortcut or self.shortcut
            raise ConfigError(
                f"depth {self.depth} is not a multiple of shortcut {self.shortcut}: "
                f"units would be cut; try depth {near}"
            )
        for position in get_args(Position):
            parse_activation(getattr(self, position))
        if self.init not in get_args(Initialisation):
            raise unknown_name("initialisation", self.init, get_args(Initialisation))
        for name in ("skip", "bias"):
            if not isinstance(value := getattr(self, name), bool):
                raise ConfigError(f"{name} is {value!r}: pass True or False")
        scale = self.init_scale
        if not isinstance(scale, int | float) or not 0 < scale < math.inf:
            raise ConfigError(
                f"init_scale is {scale!r}: pass a positive number, or init='zero'"
            )

    @property
    def units(self) -> int:
        """Number of residual units, the paper's R."""
        return self.depth // self.shortcut

    @property
    def linear(self) -> bool:
        """Whether the network is a linear map for every choice of weights."""
        return (self.pre, self.mid, self.post) == ("identity",) * 3 and not self.bias

    def with_(self, **changes: Any) -> "Blueprint":
        """Return a changed copy."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)
