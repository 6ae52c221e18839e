"""Decode once, then map: arrays kept as ``.npy`` files that processes share.

An entry is three files: inputs, labels and a small record with their digests,
written last. Its name holds a hash of the sources' paths, sizes and times, so a
changed source never meets a stale entry. Each file is written beside its place and
moved there in one step; two processes that decode at once write the same bytes.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from theodolite.data.checksums import Decoded, sha256

VARIABLE = "THEODOLITE_CACHE"
_FORMAT = 1
_PARTS = ("inputs.npy", "labels.npy", "json")
_CHECKED: set[tuple[str, int, int]] = set()


def cache_folder() -> Path:
    """Return THEODOLITE_CACHE, else ``theodolite`` in the user's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "theodolite"


def remembered(
    label: str, sources: Sequence[Path], build: Callable[[], Decoded]
) -> Decoded:
    """Return the cached arrays of these sources, else build and keep them.

    Arrays that are memory maps already are not copied into the cache, and a cache
    that cannot be written is done without.

    Args:
        label: Dataset, split and whatever else changes the arrays.
        sources: Files that the arrays are decoded from.
        build: Decodes them.
    """
    stem = _stem(label, sources)
    if (kept := _fetch(stem)) is not None:
        return kept
    built = build()
    if isinstance(built.inputs, np.memmap):
        return built
    try:
        _keep(stem, built)
    except OSError:
        return built
    return _fetch(stem) or built


def clear_cache() -> int:
    """Delete every entry of the cache and return the bytes freed."""
    freed = 0
    for path in _files(cache_folder(), (*_PARTS, "tmp")):
        size = path.stat().st_size
        path.unlink(missing_ok=True)
        freed += size
    return freed


def _stem(label: str, sources: Sequence[Path]) -> str:
    """Name an entry: label, hash of the paths, hash of sizes and times."""
    paths = [str(source.resolve()) for source in sources]
    marks = [(s.st_size, s.st_mtime_ns) for s in (source.stat() for source in sources)]
    return f"{label}-{_hash(paths)}-{_hash([_FORMAT, marks])}"


def _hash(value: object) -> str:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=8).hexdigest()


def _fetch(stem: str) -> Decoded | None:
    """Open an entry as memory maps; None where it is absent or damaged."""
    inputs, labels, record = (cache_folder() / f"{stem}.{part}" for part in _PARTS)
    try:
        facts = json.loads(record.read_text())
        found = Decoded(
            inputs=_open(inputs, facts["inputs_sha256"]),
            labels=_open(labels, facts["labels_sha256"]),
            inputs_sha256=facts["inputs_sha256"],
            labels_sha256=facts["labels_sha256"],
            files_match=facts["files_match"],
        )
    except (OSError, ValueError, EOFError, KeyError, TypeError):
        return None
    return found


def _open(path: Path, digest: str) -> np.ndarray:
    """Map a file and compare its digest, once a process."""
    array = np.lib.format.open_memmap(path, mode="r")
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
    facts = {
        "inputs_sha256": built.inputs_sha256,
        "labels_sha256": built.labels_sha256,
        "files_match": built.files_match,
    }
    inputs, labels, record = (folder / f"{stem}.{part}" for part in _PARTS)
    _write(inputs, lambda path: _save(path, built.inputs))
    _write(labels, lambda path: _save(path, built.labels))
    _write(record, lambda path: path.write_text(json.dumps(facts)))
    _drop_stale(folder, stem)


def _save(path: Path, array: np.ndarray) -> None:
    # Not np.save, which does not notice when the last buffer meets a full disk.
    array = np.ascontiguousarray(array)
    with path.open("wb") as stream:
        header = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(array.data.cast("B"))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the place, then move there in one step."""
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
