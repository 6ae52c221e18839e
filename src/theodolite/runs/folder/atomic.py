"""Atomic file writes, and locks that end with their process."""

import errno
import functools
import hashlib
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from theodolite.core import RunError

_SUFFIX = ".part"
# A writer holds its temporary file for milliseconds; an hour is a dead writer's.
_OLD_S = 3600.0
# Links that are followed; Linux has the same limit.
_MOST_LINKS = 40

_SPACE = "free some space or choose another folder"
_RIGHTS = "make it writable or choose another folder"
_IN_THE_WAY = "move the file that stands where a folder is wanted"
_ADVICE = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EROFS: _RIGHTS,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
}


@contextmanager
def refusing(action: str, folder: Path) -> Iterator[None]:
    """Turn an OSError into a RunError about the folder."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        advice = _ADVICE.get(error.errno or 0, "choose another folder")
        raise RunError(
            f"cannot {action} the run folder {folder}: {reason}; what was there is "
            f"kept, finished cells included: {advice}, then run again"
        ) from error


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file atomically: temporary file, fsync, rename, fsync the folder.

    Raises:
        OSError: The file could not be written; what was at ``path`` is untouched
            and the temporary file is gone.
    """
    part = path.parent / f".{_here()}-{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync_folder(path.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically; remove temporary files of killed processes.

    A link stays, and its target is replaced. A device, a pipe or a file that is
    already open, such as ``/dev/stdout``, is written to directly and never replaced;
    this is not atomic.

    Raises:
        OSError: The file could not be written; see :func:`write_atomic`.
    """
    file = _replaceable(path)
    if file is None:
        with open(path, "wb") as through:
            through.write(content)
        return
    _sweep(file.parent.glob(f".*{_SUFFIX}"))
    write_atomic(file, content)


def _replaceable(path: Path) -> Path | None:
    """Return the target of links, or None if it can only be written to directly."""
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(path.parent))
        if folder.name == "fd" and folder.parts[1] in ("dev", "proc"):
            return None  # a file by the number under which a process holds it open
        if not path.is_symlink():
            special = path.exists() and not (path.is_file() or path.is_dir())
            return None if special else path
        path = folder / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def write_text(path: Path | str, text: str) -> Path:
    """Write a text file atomically; create its folders.

    Args:
        path: File to write, or a link to one; a device or a pipe is written to
            directly.
        text: Its content; characters that UTF-8 cannot encode become "?".

    Returns:
        The file written.

    Raises:
        RunError: It cannot be written there; a file at ``path`` is untouched.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode("utf-8", "replace"))
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or wrong
        if isinstance(wrong, FileExistsError):
            reason = "a file stands where its folder would be"
        raise RunError(
            f"cannot write {target} ({reason}): pass another destination"
        ) from wrong
    return target


def sweep(folder: Path) -> None:
    """Remove temporary files of processes that have ended."""
    _sweep(folder.rglob(f".*{_SUFFIX}"))


def _sweep(parts: Iterable[Path]) -> None:
    for part in parts:
        with suppress(OSError, ValueError):
            if _abandoned(part):
                part.unlink()


def _abandoned(part: Path) -> bool:
    here, pid, _ = part.name[1 : -len(_SUFFIX)].split("-")
    if time.time() - part.stat().st_mtime > _OLD_S:
        return True
    return here == _here() and not _alive(int(pid))


def _alive(pid: int) -> bool:
    if os.name == "nt":  # os.kill would end the process there; wait for old age
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _zombie(pid)


def _zombie(pid: int) -> bool:
    """Return whether a process is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


@functools.cache
def _here() -> str:
    """Return a name of the machine and PID namespace of this process."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the rename survives a power cut."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
    """Take a lock if it is free; return whether it was.

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
        # excludes nobody, so open the path again.


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
