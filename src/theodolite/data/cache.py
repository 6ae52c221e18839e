"""A cache of decoded arrays: ``.npy`` files that processes share by memory map.

An entry is three files: inputs, labels and a small record, written last, with their
digests, shapes and types, and the record's own digest. Its name holds a hash of the
sources' paths, sizes and times, so a changed source gets a new entry. Each file is
written under another name and then renamed; two processes that decode at once write
the same bytes. A damaged entry is made again.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.core import DataError

from .checksums import Decoded, sha256
from .files import escape, is_regular, reason_of, size_of

VARIABLE = "THEODOLITE_CACHE"
_FORMAT = 2
# A record is a few hundred bytes.
_MOST_RECORD = 2**16
_PARTS = ("inputs.npy", "labels.npy", "json")
_CHECKED: set[tuple[str, int, int]] = set()


def cache_folder() -> Path:
    """Return THEODOLITE_CACHE, else ``theodolite`` in the user's cache folder."""
    chosen, base = os.environ.get(VARIABLE), os.environ.get("XDG_CACHE_HOME")
    try:
        if chosen:
            return Path(chosen).expanduser()
        return (Path(base) if base else Path("~/.cache").expanduser()) / "theodolite"
    except RuntimeError:  # no such user, or a user without a home
        raise DataError(
            f"the cache folder {escape(chosen or '~/.cache')} has no home to start "
            f"from: set {VARIABLE} to a folder"
        ) from None


def cached(
    label: str, sources: Sequence[Path], build: Callable[[], Decoded]
) -> Decoded:
    """Return the cached arrays of these sources, or build and cache them.

    Arrays that are already memory maps are not copied into the cache. A cache that
    cannot be written is not used.

    Args:
        label: Dataset, split and all other settings that change the arrays.
        sources: Files that the arrays are decoded from.
        build: Function that decodes the files.
    """
    stem = _stem(label, sources)
    if (kept := _fetch(stem)) is not None:
        return kept
    built = build()
    if isinstance(built.inputs, np.memmap):
        return built
    try:
        _keep(stem, built)
    except (OSError, DataError):
        return built
    return _fetch(stem) or built


def _stem(label: str, sources: Sequence[Path]) -> str:
    """Name an entry: label, hash of the paths, hash of sizes and times."""
    sizes = [size_of(source) for source in sources]
    try:
        paths = [str(source.resolve()) for source in sources]
        times = [source.stat().st_mtime_ns for source in sources]
    except (OSError, RuntimeError) as error:
        raise DataError(
            f"{escape(sources[0])} or what goes with it went away while it was read "
            f"({reason_of(error)}): put it back and try again"
        ) from error
    marks = list(zip(sizes, times, strict=True))
    return f"{label}-{_hash(paths)}-{_hash([_FORMAT, marks])}"


def _hash(value: object) -> str:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=8).hexdigest()


def _fetch(stem: str) -> Decoded | None:
    """Open an entry as memory maps; None where it is absent or damaged."""
    try:
        folder = cache_folder()
        inputs, labels, record = (folder / f"{stem}.{part}" for part in _PARTS)
        if not all(is_regular(path) for path in (inputs, labels, record)):
            return None
        facts = _recorded(record)
        return Decoded(
            inputs=_open(inputs, facts["inputs"], facts["inputs_sha256"]),
            labels=_open(labels, facts["labels"], facts["labels_sha256"]),
            inputs_sha256=facts["inputs_sha256"],
            labels_sha256=facts["labels_sha256"],
            files_match=facts["files_match"],
        )
    except Exception:  # a damaged file raises almost anything, and is made again
        return None


def _recorded(path: Path) -> dict[str, Any]:
    """Return the facts in a cache record, or raise if its checksum is wrong."""
    if size_of(path) > _MOST_RECORD:
        raise ValueError(f"{path} is no record")
    facts = json.loads(path.read_text(encoding="utf-8"))
    if facts.pop("record") != _hash(facts):
        raise ValueError(f"{path} was changed")
    return facts


def _kind(array: np.ndarray) -> list[Any]:
    """Return shape, type and order, which a digest of the bytes does not hold."""
    return [list(array.shape), array.dtype.str, bool(array.flags.c_contiguous)]


def _open(path: Path, kind: list[Any], digest: str) -> np.ndarray:
    """Map a file and compare its digest, once per process."""
    array = np.lib.format.open_memmap(path, mode="r")
    if _kind(array) != kind:
        raise ValueError(f"{path} is of another shape or type")
    facts = path.stat()
    seen = (f"{path}:{digest}", facts.st_size, facts.st_mtime_ns)
    if seen not in _CHECKED:
        if sha256(array) != digest:
            raise ValueError(f"{path} does not have the digest {digest}")
        _CHECKED.add(seen)
    return array


def _keep(stem: str, built: Decoded) -> None:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {
        "inputs": _kind(np.ascontiguousarray(built.inputs)),
        "labels": _kind(np.ascontiguousarray(built.labels)),
        "inputs_sha256": built.inputs_sha256,
        "labels_sha256": built.labels_sha256,
        "files_match": built.files_match,
    }
    facts["record"] = _hash(facts)
    inputs, labels, record = (folder / f"{stem}.{part}" for part in _PARTS)
    _write(inputs, lambda path: _save(path, built.inputs))
    _write(labels, lambda path: _save(path, built.labels))
    _write(record, lambda path: path.write_text(json.dumps(facts), "utf-8"))
    _drop_stale(folder, stem)


def _save(path: Path, array: np.ndarray) -> None:
    # Not np.save, which does not notice when the last buffer meets a full disk.
    array = np.ascontiguousarray(array)
    with path.open("wb") as stream:
        header = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(array.data.cast("B"))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write a temporary file, then rename it."""
    handle, name = tempfile.mkstemp(".tmp", path.stem[:32], path.parent)
    os.close(handle)
    try:
        write(Path(name))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _drop_stale(folder: Path, stem: str) -> None:
    """Delete entries of the same source paths at an earlier size or time."""
    family = stem.rsplit("-", 1)[0] + "-"
    for path in _files(folder, _PARTS):
        if path.name.startswith(family) and not path.name.startswith(stem):
            try:
                path.unlink()
            except OSError:  # open elsewhere, on systems that mind
                continue


def _files(folder: Path, endings: Iterable[str]) -> list[Path]:
    return [path for end in endings for path in folder.glob(f"*.{end}")]
