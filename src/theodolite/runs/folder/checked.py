"""Files of a run with digests, so that a damaged file is never read.

::

    summary.json
    checks/summary.json.sha256     digest and name, as `sha256sum` writes them

A cell keeps its digest in its own last line; see :mod:`theodolite.runs.folder.spec`.
"""

import errno
import hashlib
import os
import secrets
import shlex
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from theodolite.core import RunError

from .atomic import wait_lock, write_atomic

CHECKS = "checks"
_SUFFIX = ".sha256"
# Somebody may be writing the two files while we read them.
_TRIES, _PAUSE_S = 4, 0.02


@dataclass(frozen=True)
class Damage:
    """A damaged file of a run.

    Attributes:
        folder: The run's folder.
        name: The file, relative to the folder.
        problem: What is wrong with it, such as "is missing".

    Example:
        >>> str(Damage(Path("out/runs/p/s/0af"), "summary.json", "is not JSON"))
        'out/runs/p/s/0af/summary.json is not JSON'
    """

    folder: Path
    name: str
    problem: str

    @property
    def advice(self) -> str:
        """The command that repairs it."""
        root = self.folder.parents[3] if len(self.folder.parents) > 3 else self.folder
        return f"`theodolite repair --out {shlex.quote(str(root))}`"

    def __str__(self) -> str:
        return f"{self.folder / self.name} {self.problem}"


class DamagedError(RunError):
    """A file of a run is damaged; ``damage`` says which and why."""

    def __init__(self, damage: Damage) -> None:
        self.damage = damage
        super().__init__(
            f"{damage}: {damage.advice} writes it again from the finished cells"
        )

    def __reduce__(self) -> tuple[type["DamagedError"], tuple[Damage]]:
        return type(self), (self.damage,)


def write_checked(folder: Path, name: str, content: bytes) -> Path:
    """Write a file and its digest, unless both are there.

    If it is killed at any moment, the file still matches a digest: while one file
    replaces another, the digests of both are kept.

    Raises:
        OSError: The file could not be written.
    """
    path, check = folder / name, _check_of(folder, name)
    new = hashlib.sha256(content).hexdigest()
    for place in (path, check, folder / "locks" / "files"):
        place.parent.mkdir(parents=True, exist_ok=True)
    with wait_lock(folder / "locks" / "files"):
        for place in (path, check):
            clear_place(place)
        known = _known(check)
        if known == [new] and _digest(path) == new:
            return path
        write_atomic(check, _lines(name, *known[-1:], new))
        write_atomic(path, content)
        if known:
            write_atomic(check, _lines(name, new))
    return path


def read_checked(folder: Path, name: str) -> bytes | None:
    """Return the content of a file; None where there is none.

    Raises:
        DamagedError: It is not what was written, or cannot be read.
    """
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise DamagedError(Damage(folder, name, "is not a file of the run"))
    known: list[str] = []
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        try:
            content = read_regular(folder / name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            problem = f"cannot be read ({reason})"
            raise DamagedError(Damage(folder, name, problem)) from error
        known = _known(_check_of(folder, name))
        if hashlib.sha256(content).hexdigest() in known:
            return content
    problem = "is not what was written" if known else "has no digest to be checked by"
    raise DamagedError(Damage(folder, name, problem))


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: There is none; a named pipe is not opened, which would wait for ever.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.ENXIO, "not a regular file", str(path))
    return path.read_bytes()


def checked_text(folder: Path, name: str) -> str | None:
    """Return the text of a file; see :func:`read_checked`."""
    content = read_checked(folder, name)
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start})"
        raise DamagedError(Damage(folder, name, problem)) from error


def written_names(folder: Path) -> list[str]:
    """Return the names of all files that were written with a digest, sorted."""
    checks = folder / CHECKS
    paths = checks.rglob(f"*{_SUFFIX}") if checks.is_dir() else ()
    names = (str(path.relative_to(checks).as_posix()) for path in paths)
    return sorted(name.removesuffix(_SUFFIX) for name in names)


def damage_of(folder: Path, name: str) -> Damage | None:
    """Return the damage of a file, None if it is intact."""
    try:
        content = read_checked(folder, name)
    except DamagedError as error:
        return error.damage
    return Damage(folder, name, "is missing") if content is None else None


def set_aside(folder: Path, name: str) -> None:
    """Move a damaged file to ``damaged/`` and delete its digest."""
    _move(folder / name, folder / "damaged" / name)
    check = _check_of(folder, name)
    clear_place(check)
    check.unlink(missing_ok=True)


def clear_place(path: Path) -> None:
    """Move away a folder or a named pipe that has the name of a file."""
    if path.exists() and not path.is_file():
        _move(path, path.with_name(f"{path.name}.damaged"))


def _move(source: Path, target: Path) -> None:
    if target.exists():
        target = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError, NotADirectoryError):
        os.replace(source, target)


def _check_of(folder: Path, name: str) -> Path:
    return folder / CHECKS / f"{name}{_SUFFIX}"


def _lines(name: str, *digests: str) -> bytes:
    return "".join(f"{digest}  {name}\n" for digest in digests).encode()


def _known(check: Path) -> list[str]:
    """Return the stored digests of a file, the newest last."""
    try:
        text = read_regular(check).decode("ascii", "replace")
    except OSError:
        return []
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except OSError:
        return None
