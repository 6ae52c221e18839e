"""Locks that the operating system frees when their holder dies."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _claim(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _claim(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Take a lock if it is free; say whether it was.

    The file goes away with the lock, so a folder does not fill with them.

    Raises:
        OSError: The lock file cannot be made.
    """
    handle = _acquire(path)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            with suppress(OSError):  # an open file cannot be removed on Windows
                path.unlink()
            os.close(handle)


@contextmanager
def wait_lock(path: Path, *, poll_s: float = 0.01) -> Iterator[None]:
    """Take a lock, waiting for its holder; for work of milliseconds."""
    while True:
        with try_lock(path) as mine:
            if mine:
                yield
                return
        time.sleep(poll_s)


def _acquire(path: Path) -> int | None:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            taken = _take(handle)
            current = taken and _is_at(handle, path)
        except BaseException:
            os.close(handle)
            raise
        if current:
            return handle
        os.close(handle)
        if not taken:
            return None
        # Its last holder removed the file after we opened it: a lock on that file
        # excludes nobody, so open the path afresh.


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _take(handle: int) -> bool:
    try:
        _claim(handle)
    except (BlockingIOError, PermissionError):
        return False
    return True
