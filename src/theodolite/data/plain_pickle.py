"""Read the pickles of CIFAR without running anything that is in them.

A pickle is a program that may call any function. This reader knows the few names
that a batch file needs, puts inert stand-ins of its own in their place, builds the
arrays itself afterwards, and refuses every other name.
"""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.core import DataError

_MODULES = ("numpy", "numpy.core", "numpy._core")
_TYPES = {"u1", "i4", "i8"}


def read_plain_pickle(path: Path) -> dict[str, Any]:
    """Return the dict in a pickle of strings, numbers, lists and byte arrays.

    Keys come back as str whether the file was written by Python 2 or 3.
    """
    try:
        found = _Reader(path, path.read_bytes()).load()
        if not isinstance(found, dict):
            raise DataError(
                f"{path} holds a {type(found).__name__}, a CIFAR batch holds a dict: "
                "download it again"
            )
        return {_text(key): _finish(value) for key, value in found.items()}
    except DataError:
        raise
    except Exception as error:  # a damaged pickle raises almost anything
        raise DataError(
            f"{path} cannot be read as a CIFAR batch ({type(error).__name__}: "
            f"{str(error)[:80]}): it is cut off or damaged; unpack the archive again"
        ) from error


class _Dtype:
    """Stands in for ``numpy.dtype``."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        self.code = _text(code)
        self.order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = _text(state[1])

    def real(self) -> np.dtype:
        if self.code not in _TYPES or self.order not in tuple("|<>="):
            raise ValueError(f"array of type {self.code}, wanted bytes")
        return np.dtype(self.order + self.code)


class _Array:
    """Stands in for ``numpy.ndarray``."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.dtype, fortran, self.raw = state
        self.order = "F" if fortran else "C"

    def real(self) -> np.ndarray:
        raw = self.raw.encode("latin1") if isinstance(self.raw, str) else self.raw
        flat = np.frombuffer(raw, self.dtype.real())
        return flat.reshape(self.shape, order=self.order)  # type: ignore[call-overload]


class _Reader(pickle.Unpickler):
    def __init__(self, path: Path, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        self.path = path

    def find_class(self, module: str, name: str, /) -> Any:
        if module in {f"{m}.multiarray" for m in _MODULES} and name == "_reconstruct":
            return self.reconstruct
        if module in {f"{m}.numeric" for m in _MODULES} and name == "_frombuffer":
            return self.from_buffer
        if module in _MODULES and name == "ndarray":
            return _Array
        if module in _MODULES and name == "dtype":
            return _Dtype
        if (module, name) == ("_codecs", "encode"):
            return self.encode
        raise DataError(
            f"{self.path} asks to call {module}.{name}, which no CIFAR batch needs: "
            "nothing was run; do not trust this file, and unpack the original archive"
        )

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError(f"persistent object {str(pid)[:20]}")

    def reconstruct(self, *_: object) -> _Array:
        return _Array()

    def from_buffer(self, raw: bytes, dtype: _Dtype, shape: Any, order: str) -> _Array:
        array = _Array()
        array.__setstate__((1, shape, dtype, order == "F", raw))
        return array

    def encode(self, text: str, encoding: str = "latin1") -> bytes:
        if encoding != "latin1":
            raise pickle.UnpicklingError(f"bytes in the encoding {encoding[:20]}")
        return text.encode("latin1")


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _finish(value: Any) -> Any:
    return value.real() if isinstance(value, _Array) else value
