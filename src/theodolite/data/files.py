"""The user's files: locate them in a folder and read them safely.

A file may be a pipe that never ends, a link to nowhere, a folder without permission, a
few kilobytes that inflate to gigabytes, or have a name that no terminal can print.
Each of these is a :class:`DataError` that names the file.
"""

import errno
import lzma
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from theodolite.core import DataError, free_memory

VARIABLE = "THEODOLITE_DATA"
Result = TypeVar("Result")

# Share of the free memory that one array may take: it is copied once.
_SHARE = 0.4
# Memory of an xz decoder; the strongest preset takes 65 MiB.
_XZ_MEMORY = 2**28
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def escape(path: str | os.PathLike[str]) -> str:
    r"""Return a path as text that can be printed anywhere, on one line.

    Example:
        >>> escape("a/b.png"), escape("a\nb")
        ('a/b.png', "'a\\nb'")
    """
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)


def reason_of(error: BaseException) -> str:
    """Return the short and printable reason of another library's error."""
    text = error.strerror if isinstance(error, OSError) else None
    lines = (text or str(error)).splitlines()
    return escape(lines[0][:80]) if lines else type(error).__name__


def call_reader(path: Path, read: Callable[[Path], Result]) -> Result:
    """Call a reader; turn any error into a :class:`DataError`."""
    try:
        return read(path)
    except DataError:
        raise
    except Exception as error:  # decoders raise almost anything
        raise DataError(
            f"{escape(path)} cannot be read ({reason_of(error)}): it is cut off or "
            "damaged, or may not be read; copy it or unpack its archive again"
        ) from error


def is_regular(path: Path) -> bool:
    """Return whether this is a file; raise for a broken link, a pipe or similar.

    Return False for a folder, and where there is nothing.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        absent = isinstance(error, FileNotFoundError | NotADirectoryError)
        circular = isinstance(error, OSError) and error.errno == errno.ELOOP
        if (absent or circular) and _is_link(path):
            raise DataError(
                f"{escape(path)} is a link that leads nowhere: mend or remove it, or "
                "put the file itself there"
            ) from None
        if absent:
            return False
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise _no_file(path, mode)
    return stat.S_ISREG(mode)


def is_folder(path: Path) -> bool:
    """Return whether this is a folder; raise if it cannot be accessed."""
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def sorted_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, in alphabetical order."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise _unreadable(folder, error) from error


def size_of(path: Path) -> int:
    """Return the size of a regular file in bytes; raise for anything else."""
    try:
        facts = path.stat()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(facts.st_mode):
        raise _no_file(path, facts.st_mode)
    return facts.st_size


def read_limited(path: Path, most: int, what: str) -> bytes:
    """Return the bytes of a file; raise if there are more than ``most``.

    Args:
        path: A regular file.
        most: Largest size that its format allows.
        what: Expected kind of file, for messages.
    """
    size = size_of(path)
    if size > most:
        raise DataError(
            f"{escape(path)} has {size:,} bytes, {what} has at most {most:,}: it is "
            "damaged or another file; copy it or unpack its archive again"
        )
    check_memory(path, size)

    def read(path: Path) -> bytes:
        with path.open("rb") as stream:
            return stream.read(size)

    return call_reader(path, read)


def read_xz(path: Path, most: int, what: str) -> bytes:
    """Return the decompressed bytes of an xz file; raise if more than ``most``."""
    content = read_limited(path, most, what)
    check_memory(path, most if len(content) > 2**16 else 0)

    def inflate(path: Path) -> bytes:
        reader = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
        body = reader.decompress(content, max_length=most + 1)
        if len(body) > most:
            raise DataError(
                f"{escape(path)} inflates to more than the {most:,} bytes that {what} "
                "has at most: do not trust it; copy it again"
            )
        if not reader.eof:
            raise EOFError("the stream does not end")
        if reader.unused_data.strip(b"\0"):
            raise ValueError("bytes follow the end of the stream")
        return body

    return call_reader(path, inflate)


def check_memory(what: str | os.PathLike[str], size: int) -> None:
    """Raise if an array and one copy do not fit into the free memory."""
    free = free_memory()
    if size > _SHARE * free:
        raise DataError(
            f"{escape(what)} would take {size / 2**30:.3g} GiB of the "
            f"{free / 2**30:.3g} GiB of memory that are free: free some, or pass less"
        )


def _is_link(path: Path) -> bool:
    try:
        return stat.S_ISLNK(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _no_file(path: Path, mode: int) -> DataError:
    kind = _KINDS.get(stat.S_IFMT(mode), "no file")
    return DataError(
        f"{escape(path)} is {kind} where a file is wanted: put the file itself there"
    )


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{escape(path)} cannot be looked at ({reason_of(error)}): check its name and "
        "who may read it"
    )


@dataclass(frozen=True)
class Layout:
    """One way in which a split is stored.

    Attributes:
        format: Short name of the format.
        files: The wanted files in order, each as alternative names, best first
            and the published name last.
    """

    format: str
    files: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SplitFiles:
    """The files of a split, in the order of the layout."""

    format: str
    files: tuple[Path, ...]

    @property
    def place(self) -> Path:
        """The folder that holds them."""
        return self.files[0].parent


def data_folder(name: str, folder: str | os.PathLike[str] | None, wanted: str) -> Path:
    """Return the given folder or THEODOLITE_DATA; raise if there is neither."""
    given = folder if folder is not None else os.environ.get(VARIABLE) or None
    if given is None:
        raise DataError(
            f"{name} is read from a folder and none was named: pass --data DIR "
            f"(folder=DIR in Python) or set {VARIABLE}, where DIR holds {wanted}"
        )
    source = VARIABLE if folder is None else "the data folder"
    try:
        path = Path(given).expanduser()
    except (TypeError, RuntimeError):
        path = None
    if path is None or not is_folder(path):
        raise DataError(
            f"{source} is {str(given)[:200]!r}, which is no folder: name one that "
            f"holds {wanted}"
        )
    return path


def locate(
    title: str,
    folder: Path,
    places: Sequence[str],
    layouts: Sequence[Layout],
    *,
    wanted: str,
    how_to: str,
) -> SplitFiles:
    """Return the first complete layout in the first place that has one.

    Args:
        title: Dataset and split, for messages.
        folder: The user's data folder.
        places: Folders below it to look into, ``"."`` for itself.
        layouts: Ways to store the split, best first.
        wanted: The files of the usual layout, for messages.
        how_to: How to get the files, for messages.
    """
    partial: DataError | None = None
    for place in places:
        for layout in layouts:
            at = folder / place
            try:
                files = [_first(at, names) for names in layout.files]
            except DataError as error:
                partial = partial or error
                continue
            have = tuple(file for file in files if file is not None)
            if len(have) == len(files):
                return SplitFiles(layout.format, have)
            if have and partial is None:
                gone = layout.files[files.index(None)][-1]
                partial = DataError(
                    f"{title} is incomplete: {escape(at.absolute() / gone)} is missing "
                    f"while {have[0].name} is there; {how_to}"
                )
    raise partial or DataError(
        f"{title} was not found in {escape(folder)}: wanted there {wanted}; {how_to}"
    )


def _first(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if is_regular(folder / name)), None)
