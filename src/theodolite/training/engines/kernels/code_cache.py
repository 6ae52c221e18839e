"""A place for compiled code where neither the package nor the home can be written.

numba keeps what it compiles beside the source or under the user's home, and refuses to
define a kernel where it can do neither, as in containers with both read-only.
"""

import functools
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


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
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return False
    if not hasattr(os, "getuid"):  # folders for temporary files are private there
        return True
    return found.st_uid == os.getuid() and not found.st_mode & 0o077
