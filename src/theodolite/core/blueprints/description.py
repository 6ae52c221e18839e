"""The abstract blueprint that theory predicts and networks build, and activations."""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from ..errors import ConfigError, unknown_name

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
class Blueprint(ABC):
    """Description of an architecture; subclasses are final.

    Attributes:
        kind: The architecture in words, for messages.
        width: Size of a layer, or of the first one where layers grow.
        depth: Number of layers with weights.
    """

    kind: ClassVar[str]

    width: int
    depth: int

    @property
    @abstractmethod
    def units(self) -> int:
        """Number of residual units."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Number of trainable numbers."""

    def with_(self, **changes: Any) -> Self:
        """Return a changed copy."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)


def check_integers(blueprint: object, *names: str) -> None:
    """Raise if a field is not an integer of at least 1."""
    for name in names:
        value = getattr(blueprint, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} is {value!r}: pass a whole number from 1 up")
