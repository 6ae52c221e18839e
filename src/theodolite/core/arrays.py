"""Check numbers and arrays that users pass; arrays become float64.

NumPy computes in the dtype of its input: sums of products of bytes wrap around at
256, and squares in half precision overflow at 65,504. Hence the conversion.
"""

import math
from collections.abc import Sequence
from numbers import Integral
from types import EllipsisType
from typing import TYPE_CHECKING

import numpy as np

from .errors import ConfigError, TheodoliteError


def column_major(shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the permutation from row-major parameters to the paper's order.

    ``matrix[np.ix_(order, order)]`` reorders a Hessian measured on a module whose
    parameters have these shapes.

    Closed forms take the entries of each matrix column by column, torch row by row;
    parameters are listed layer by layer, as the network applies them.

    Example:
        >>> column_major([(2, 2), (2,)])
        array([0, 2, 1, 3, 4, 5])
    """
    parts, start = [], 0
    for shape in shapes:
        shape = tuple(as_integer("size", side, 0) for side in shape)
        size = math.prod(shape)
        parts.append(start + np.arange(size).reshape(shape).ravel(order="F"))
        start += size
    return np.concatenate(parts) if parts else np.zeros(0, dtype=int)


# Shapes that beartype checks in the tests, where jaxtyping is installed.
if TYPE_CHECKING:
    Samples = np.ndarray
    Square = np.ndarray
else:
    try:
        from jaxtyping import Float

        Samples = Float[np.ndarray, "samples width"]
        Square = Float[np.ndarray, "width width"]
    except ImportError:
        Samples = Square = np.ndarray


# Annotation of array arguments. Where types are checked at run time it allows
# anything: ``as_numbers`` checks every call, and its error says what is wrong.
if TYPE_CHECKING:
    from numpy.typing import ArrayLike as Numbers
else:
    Numbers = object

# Booleans, signed and unsigned whole numbers, floats.
_REAL = "biuf"


def as_real(
    name: str, value: object, *, error: type[TheodoliteError] = ConfigError
) -> np.ndarray:
    """Return booleans, integers or floats as an array of the same type.

    Args:
        name: What the value is called in a message.
        value: Array, number, or nested lists or tuples of numbers.
        error: What to raise.

    Example:
        >>> as_real("x", [[1, 2], [3, 4]]).dtype.kind
        'i'
    """
    if np.ma.is_masked(value):
        raise error(
            f"{name} is an array with masked entries, and all of them would count: "
            "drop the masked samples, or fill them"
        )
    try:
        array = np.asarray(value)
    except Exception:  # an object's conversion may raise anything
        raise error(
            f"{name} is a {type(value).__name__} that makes no array: pass real "
            "numbers, in rows of equal length"
        ) from None
    if array.dtype.kind not in _REAL:
        raise error(
            f"{name} has shape {array.shape} and type {array.dtype}: pass real numbers"
        )
    return array


def as_numbers(
    name: str,
    value: object,
    *wanted: int | str | EllipsisType,
    finite: bool = True,
    error: type[TheodoliteError] = ConfigError,
) -> np.ndarray:
    """Return finite real numbers as a float64 array of a given shape.

    A float64 array is returned as it is, not copied.

    Args:
        name: What the value is called in a message.
        value: Array, number, or nested lists or tuples of numbers.
        *wanted: Size of each axis; a string allows any size, and a final ``...``
            allows any further axes.
        finite: Whether NaN and infinity are refused.
        error: What to raise.

    Example:
        >>> as_numbers("x", np.array([[200, 100]], np.uint8), "samples", 2)
        array([[200., 100.]])
    """
    shape = _spelled(wanted)
    try:
        array = as_real(name, value, error=error)
    except error as refusal:
        raise error(f"{refusal}; the shape wanted is {shape}") from None
    if not _fits(array.shape, wanted):
        raise error(
            f"{name} has shape {array.shape} and type {array.dtype}: pass real "
            f"numbers of shape {shape}"
        )
    with np.errstate(over="ignore"):  # seen as infinity below
        array = array.astype(np.float64, copy=False)
    wrong = array.size - int(np.isfinite(array).sum()) if finite else 0
    if wrong:
        raise error(
            f"{name} holds NaN or infinity in {wrong} of {array.size} places: drop or "
            "repair them"
        )
    return array


def convert_fields(
    owner: object, **wanted: tuple[int | str | EllipsisType, ...]
) -> None:
    """Convert fields of a frozen dataclass to arrays, by :func:`as_numbers`.

    Args:
        owner: The dataclass, from within its ``__post_init__``.
        **wanted: Shape of each field.
    """
    for name, shape in wanted.items():
        value = as_numbers(name, getattr(owner, name), *shape)
        object.__setattr__(owner, name, value)


def as_integer(name: str, value: object, least: int, most: float = math.inf) -> int:
    """Return an integer in a range as a Python int, which never overflows.

    Example:
        >>> as_integer("units", np.uint8(200), 1) * 2
        400
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ConfigError(f"{name} is {value!r}: pass a whole number from {least} up")
    if int(value) > most:
        raise ConfigError(f"{name} is {value!r}: pass a whole number up to {most:,}")
    return int(value)


def check_number(name: str, value: float, least: float = 0.0) -> None:
    """Raise if a number is not finite or is below ``least``.

    Example:
        >>> check_number("decay", 0.1)
    """
    if not least <= value < math.inf:
        raise ConfigError(f"{name} is {value!r}: pass a number from {least:g} up")


def _fits(shape: tuple[int, ...], wanted: tuple[int | str | EllipsisType, ...]) -> bool:
    if wanted[-1:] == (...,):
        wanted = wanted[:-1]
        shape = shape[: len(wanted)]
    return len(shape) == len(wanted) and all(
        isinstance(want, str) or have == want
        for have, want in zip(shape, wanted, strict=True)
    )


def _spelled(wanted: tuple[int | str | EllipsisType, ...]) -> str:
    words = ["…" if want is ... else str(want) for want in wanted]
    return f"({', '.join(words)}{',' * (len(words) == 1)})"
