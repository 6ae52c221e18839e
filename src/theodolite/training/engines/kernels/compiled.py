"""Whether numba can compile kernels here, and the arguments of compiled kernels."""

import functools
import os
import stat
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


@functools.cache
def has_cache(numba: Any) -> bool:
    """Return whether numba can cache compiled code.

    Where its own places cannot be written, ``config.CACHE_DIR`` of the module ``numba``
    is set to a temporary folder.
    """
    if _accepted(numba):
        return True
    try:
        numba.config.CACHE_DIR = str(_temporary())
    except OSError:
        return False
    return _accepted(numba)


def _accepted(numba: Any) -> bool:
    """Return whether numba can cache functions of this folder's files."""

    def never_compiled() -> None:
        """Stand for the kernels, which are defined in the same folder."""

    try:
        numba.njit(cache=True)(never_compiled)
    except RuntimeError:  # "cannot cache function: no locator available"
        return False
    return True


def _temporary() -> Path:
    """Return a folder that all processes of this user share, and no other user.

    Code read from it is run: a folder that another user made, or can write to, is not
    used, and a new one is made.
    """
    user = os.getuid() if hasattr(os, "getuid") else ""
    shared = Path(tempfile.gettempdir()) / f"theodolite-compiled-{user}"
    try:
        shared.mkdir(mode=0o700, exist_ok=True)
        if _private(shared):
            return shared
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="theodolite-compiled-"))


def _private(folder: Path) -> bool:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "getuid"):  # folders for temporary files are private there
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o077


def numba_obstacle() -> str | None:
    """Return why numba cannot compile kernels here and what to do, if it cannot."""
    try:
        numba = import_module("numba")
    except ImportError:
        return "numba cannot be imported: pip install 'theodolite[fast]'"
    if numba.config.DISABLE_JIT:
        return "NUMBA_DISABLE_JIT keeps numba from compiling: unset it"
    if not has_cache(numba):
        return (
            "numba finds no folder to keep compiled code in: set NUMBA_CACHE_DIR to "
            "one that can be written"
        )
    return None


class Shape(NamedTuple):
    """A network as kernels see it."""

    # A tuple as long as the network is wide, so that the compiler knows it.
    width: tuple[int, ...]
    span: tuple[int, ...]  # a tuple as long as a row of a group, in samples
    shortcut: int  # matrices per unit
    skip: bool  # whether units have the identity path
    relu: bool  # whether ReLU stands between the matrices of a unit


def aligned(size: int, dtype: np.dtype) -> np.ndarray:
    """Return a flat array of zeros that starts on a cache line."""
    raw = np.zeros(size * dtype.itemsize + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * dtype.itemsize].view(dtype)


def in_groups(
    matrix: np.ndarray, *, rows: int, span: int, dtype: np.dtype
) -> np.ndarray:
    """Return a matrix, features by samples, as flat groups of ``span`` samples.

    Groups have ``rows`` rows; missing rows and samples are zeros.
    """
    features, samples = matrix.shape
    count = -(-samples // span)
    full = np.zeros((rows, count * span), dtype=dtype)
    full[:features, :samples] = matrix
    flat = aligned(full.size, dtype)
    flat[:] = full.reshape(rows, count, span).transpose(1, 0, 2).ravel()
    return flat
