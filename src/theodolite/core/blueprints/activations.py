"""Activations by name, with coefficients where they take any."""

import math

from theodolite.core.errors import ConfigError, unknown_name

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
