"""Whether kernels are compiled, and what a compiled kernel is told."""

import functools
import os
import stat
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from theodolite.core import ConfigError


@functools.cache
def has_cache(numba: Any) -> bool:
    """Say whether compiled kernels can be kept; turn to a temporary folder if need be.

    Args:
        numba: The module, whose ``config.CACHE_DIR`` is set where its own places fail.
    """
    if _accepted(numba):
        return True
    try:
        numba.config.CACHE_DIR = str(_temporary())
    except OSError:
        return False
    return _accepted(numba)


def _accepted(numba: Any) -> bool:
    """See whether numba finds a place for functions of this folder's files."""
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:  # "cannot cache function: no locator available"
        return False
    return True


def _probe() -> None:
    """Stand for the kernels, which live in the same folder; never compiled."""


def _temporary() -> Path:
    """Return a folder that all processes of this user share, and nobody else.

    What is read from it is run, so that a folder which somebody else made, or can
    write to, is passed over for a fresh one.
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


def use_numba(compiled: bool | None) -> bool:
    """Return whether to compile.

    Args:
        compiled: None for numba where it can be imported, may compile and has a place
            for its code; True demands it; False forbids it.
    """
    if compiled is not None and not isinstance(compiled, bool):
        raise ConfigError(
            f"compiled is {compiled!r}: pass True, False, or None to use numba "
            "where it is installed"
        )
    if compiled is False:
        return False
    obstacle = _obstacle()
    if obstacle is not None and compiled:
        raise ConfigError(f"compiled=True, but {obstacle}, or pass compiled=False")
    return obstacle is None


def _obstacle() -> str | None:
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
    """A network as kernels see it.

    Attributes:
        width: A tuple as long as the network is wide, so that the compiler knows it.
        span: A tuple as long as a row of a group, in samples.
        shortcut: Matrices a unit.
        skip: Whether units have the identity path.
        relu: Whether ReLU stands between the matrices of a unit.
    """

    width: tuple[int, ...]
    span: tuple[int, ...]
    shortcut: int
    skip: bool
    relu: bool


class Rule(NamedTuple):
    """How every point moves and when it stops; see ``Engine.advance``."""

    rates: np.ndarray
    momentum: np.ndarray
    weight_decay: np.ndarray
    floor: np.ndarray
    ceiling: np.ndarray


class Log(NamedTuple):
    """What happened to every point, filled in by a kernel; see ``Advance``."""

    losses: np.ndarray
    taken: np.ndarray
    stopped: np.ndarray


def aligned(size: int, dtype: np.dtype) -> np.ndarray:
    """Return a flat array of zeros that starts on a cache line."""
    raw = np.zeros(size * dtype.itemsize + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * dtype.itemsize].view(dtype)


def in_groups(
    matrix: np.ndarray, *, rows: int, span: int, dtype: np.dtype
) -> np.ndarray:
    """Cut columns into groups of ``span``, padded with zeros; return them flat.

    Args:
        matrix: Features by samples.
        rows: Rows of a group, at least as many as features.
        span: Samples a group.
        dtype: Type of the result.
    """
    features, samples = matrix.shape
    count = -(-samples // span)
    full = np.zeros((rows, count * span), dtype=dtype)
    full[:features, :samples] = matrix
    flat = aligned(full.size, dtype)
    flat[:] = full.reshape(rows, count, span).transpose(1, 0, 2).ravel()
    return flat
