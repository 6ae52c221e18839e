"""The one gate for arrays that come from outside: float64, or a sentence.

NumPy computes in the type that it is given, so that sums of products of bytes wrap
around at 256 and half-precision squares overflow at 65,504. What passes this gate
computes in float64, whatever it came as; what is no real number is refused.
"""

from numbers import Integral
from types import EllipsisType
from typing import TYPE_CHECKING

import numpy as np

from theodolite.core.errors import ConfigError, TheodoliteError

# What functions say that they take. Where types are checked at run time this is
# anything: the gate itself checks, at every call, and says what is wrong.
if TYPE_CHECKING:
    from numpy.typing import ArrayLike as Numbers
else:
    Numbers = object

# Booleans, signed and unsigned whole numbers, floats.
_REAL = "biuf"


def as_real(
    name: str, value: object, *, error: type[TheodoliteError] = ConfigError
) -> np.ndarray:
    """Return booleans, whole numbers or floats as an array of the type they have.

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
        found = np.asarray(value)
    except Exception:  # whatever an object's own conversion raises
        raise error(
            f"{name} is a {type(value).__name__} that makes no array: pass real "
            "numbers, in rows of equal length"
        ) from None
    if found.dtype.kind not in _REAL:
        raise error(
            f"{name} has shape {found.shape} and type {found.dtype}: pass real numbers"
        )
    return found


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
        *wanted: Size of each axis; a word stands for any size, and ``...`` at the
            end for any further axes.
        finite: Whether NaN and infinity are refused.
        error: What to raise.

    Example:
        >>> as_numbers("x", np.array([[200, 100]], np.uint8), "samples", 2)
        array([[200., 100.]])
    """
    shape = _spelled(wanted)
    try:
        found = as_real(name, value, error=error)
    except error as refusal:
        raise error(f"{refusal}; the shape wanted is {shape}") from None
    if not _fits(found.shape, wanted):
        raise error(
            f"{name} has shape {found.shape} and type {found.dtype}: pass real "
            f"numbers of shape {shape}"
        )
    with np.errstate(over="ignore"):  # seen as infinity below
        found = found.astype(np.float64, copy=False)
    wrong = found.size - int(np.isfinite(found).sum()) if finite else 0
    if wrong:
        raise error(
            f"{name} holds NaN or infinity in {wrong} of {found.size} places: drop or "
            "repair them"
        )
    return found


def hold_numbers(owner: object, **wanted: tuple[int | str | EllipsisType, ...]) -> None:
    """Pass fields of a frozen dataclass through :func:`as_numbers`, in place.

    Args:
        owner: The dataclass, from within its ``__post_init__``.
        **wanted: Shape of each field.
    """
    for name, shape in wanted.items():
        value = as_numbers(name, getattr(owner, name), *shape)
        object.__setattr__(owner, name, value)


def as_whole(name: str, value: object, least: int) -> int:
    """Return a whole number from a limit up as a Python one, which never wraps.

    Example:
        >>> as_whole("units", np.uint8(200), 1) * 2
        400
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ConfigError(f"{name} is {value!r}: pass a whole number from {least} up")
    return int(value)


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
