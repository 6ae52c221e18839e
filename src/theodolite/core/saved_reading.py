"""Readings on disk: arrays as NumPy writes them, all else in a header of JSON.

Nothing in a file is executed or unpickled. A file is a zip archive, not compressed, so
that nothing inside is larger than it says; a kind is looked up among the public names
of the rooms that make readings, and its fields must be those that this version knows.
"""

import json
import math
import os
import zipfile
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.cost import Cost
from theodolite.core.errors import DataError
from theodolite.core.rows import Rows
from theodolite.core.status import NormMode, Status

if TYPE_CHECKING:
    from theodolite.core.reading import Reading

_FORMAT, _VERSION = "theodolite reading", 1
_HEADER = "header.json"
_ROOMS = (
    "theodolite.instruments",
    "theodolite.training",
    "theodolite.paths",
    "theodolite.certificates",
)
# What parsing meets in files that are not whole, or not ours.
_DAMAGE = (
    zipfile.BadZipFile,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    EOFError,
)
_ENUMS = {"status": Status, "norm_mode": NormMode}


def save(reading: "Reading", path: str | Path) -> None:
    """Write a reading to a file, in one piece or not at all."""
    arrays: dict[str, np.ndarray] = {}
    header = {"format": _FORMAT, "version": _VERSION, **_told(reading, arrays)}
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_HEADER, json.dumps(header, allow_nan=False))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as place:
                    np.lib.format.write_array(place, array, allow_pickle=False)
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise DataError(
            f"{target} cannot be written ({error.strerror}): save to another folder"
        ) from None


def load(path: str | Path, kind: type["Reading"]) -> Any:
    """Return the reading of a file, if it is of a kind and whole."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, path, kind)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}): check the path"
        ) from None
    except _DAMAGE:
        raise DataError(
            f"{path} is no reading, or a damaged one: pass a file that "
            "Reading.save wrote"
        ) from None


def _read(archive: zipfile.ZipFile, path: str | Path, kind: type["Reading"]) -> Any:
    for entry in archive.infolist():
        if entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError("compressed")
    header = json.loads(archive.read(_HEADER))
    if header["format"] != _FORMAT:
        raise ValueError("another format")
    if header["version"] != _VERSION:
        raise DataError(
            f"{path} has version {header['version']!r} of the format of readings, "
            f"known is {_VERSION}: read it with the theodolite that wrote it"
        )
    found = _made(header, archive, path)
    if not isinstance(found, kind):
        raise DataError(
            f"{path} holds a {type(found).__name__}, wanted is a {kind.__name__}: load "
            f"it with {type(found).__name__}.load"
        )
    return found


def _told(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a value as JSON, with arrays put aside by number."""
    from theodolite.core.reading import Reading

    if isinstance(value, Reading):
        held = {f.name: getattr(value, f.name) for f in fields(value)}
        return {
            "kind": type(value).__name__,
            "fields": {name: _told(part, arrays) for name, part in held.items()},
        }
    if isinstance(value, np.ndarray):
        arrays[name := str(len(arrays))] = value
        return {"array": name}
    for name, enum in _ENUMS.items():
        if isinstance(value, enum):
            return {name: value.value}
    if isinstance(value, Cost):
        return {"cost": value.to_dict()}
    if isinstance(value, Rows):
        return {"rows": [dict(row) for row in value]}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_told(part, arrays) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[key, _told(part, arrays)] for key, part in value.items()]}
    return _atom(value)


def _atom(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise DataError(
        f"a {type(value).__name__} in a reading cannot be saved: keep numbers, words, "
        "arrays and lists or dicts of them"
    )


def _made(given: Any, archive: zipfile.ZipFile, path: str | Path) -> Any:
    """Return the value that JSON stands for."""
    if not isinstance(given, dict):
        return given
    if "kind" in given:
        return _reading(given, archive, path)
    ((name, held),) = given.items()
    if name in _ENUMS:
        return _ENUMS[name](held)
    if name == "array":
        return _array(archive, f"{held}.npy")
    if name == "cost":
        return Cost(**held)
    if name == "rows":
        return Rows(held)
    if name == "float":
        return float(held)
    if name == "dict":
        return {key: _made(part, archive, path) for key, part in held}
    made = [_made(part, archive, path) for part in held]
    return {"tuple": tuple, "list": list}[name](made)


def _reading(
    given: dict[str, Any], archive: zipfile.ZipFile, path: str | Path
) -> "Reading":
    kind = _kind(given["kind"])
    if kind is None:
        raise DataError(
            f"{path} holds a {given['kind']!r}, a kind of reading that is not known "
            "here: read it with the theodolite that wrote it"
        )
    known = {f.name for f in fields(kind)}
    if set(given["fields"]) != known:
        odd = ", ".join(sorted(known ^ set(given["fields"])))
        raise DataError(
            f"{path} holds a {kind.__name__} with other fields than this version's "
            f"({odd}): read it with the theodolite that wrote it"
        )
    parts = given["fields"].items()
    found = kind(**{name: _made(part, archive, path) for name, part in parts})
    for name in kind.dims:
        if np.asarray(getattr(found, name)).dtype.kind not in "biuf":
            raise ValueError(name)
    found.check()
    return found


def _kind(name: str) -> type["Reading"] | None:
    """Return a kind of reading by its name, among those public or else loaded."""
    from theodolite.core.reading import Reading

    for room in map(import_module, _ROOMS):
        if name in room.__all__:
            kind = getattr(room, name)
            known = isinstance(kind, type) and issubclass(kind, Reading)
            return kind if known else None
    queue = [Reading]
    while queue:
        kind = queue.pop()
        if kind.__name__ == name:
            return kind
        queue += kind.__subclasses__()
    return None


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Read an array that is as long as its header says."""
    raw = archive.read(name)
    with archive.open(name) as place:
        version = np.lib.format.read_magic(place)
        reader = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            reader = np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(place)
        start = place.tell()
    if dtype.hasobject or len(raw) - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(name)
    flat = np.frombuffer(raw, dtype, offset=start)
    return flat.reshape(shape, order="F" if fortran else "C").copy()
