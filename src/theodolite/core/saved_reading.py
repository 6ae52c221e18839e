"""Readings on disk: a NumPy archive of arrays with a JSON header.

Nothing in a file is executed or unpickled. A file is a zip archive, not compressed, so
that nothing inside is larger than it says. The class of a reading is looked up among
the public names of the packages that make readings, and the types of its fields are
the schema of the header.
"""

import json
import math
import os
import zipfile
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from .errors import DataError
from .rows import Rows, to_json_values
from .schema import read_value
from .status import Cost

if TYPE_CHECKING:
    from .reading import Reading

_FORMAT, _VERSION = "theodolite reading", 2
_HEADER = "header.json"
_PACKAGES = (
    "theodolite.instruments",
    "theodolite.training",
    "theodolite.paths",
    "theodolite.certificates",
)
# Errors of parsing files that are damaged, or not ours.
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
_REQUIRED = (MISSING, MISSING)


@dataclass
class _Header:
    """The kind of a reading and its fields; arrays are given by their entry number."""

    kind: str
    fields: dict[str, Any]


def save(reading: "Reading", path: str | Path) -> None:
    """Write a reading to a file, completely or not at all."""
    arrays: dict[str, np.ndarray] = {}
    header = {"format": _FORMAT, "version": _VERSION, **_values(reading, arrays)}
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_HEADER, json.dumps(header))
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
    """Return the reading of a file; raise for another kind or a damaged file."""
    try:
        with zipfile.ZipFile(path) as archive:
            reading = _read(archive, path)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}): check the path"
        ) from None
    except _DAMAGE:
        raise DataError(
            f"{path} is no reading, or a damaged one: pass a file that "
            "Reading.save wrote"
        ) from None
    if not isinstance(reading, kind):
        name = type(reading).__name__
        raise DataError(
            f"{path} holds a {name}, wanted is a {kind.__name__}: load it with "
            f"{name}.load"
        )
    return reading


def _read(archive: zipfile.ZipFile, path: str | Path) -> "Reading":
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
    return _made(read_value(_Header, header), archive, path)


def _values(reading: "Reading", arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return a reading as JSON values, with arrays put aside by number."""
    values = {f.name: getattr(reading, f.name) for f in fields(reading)}
    return {
        "kind": type(reading).__name__,
        "fields": {name: _value(value, arrays) for name, value in values.items()},
    }


def _value(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    from .reading import Reading

    if isinstance(value, Reading):
        return _values(value, arrays)
    if isinstance(value, np.ndarray):
        arrays[name := str(len(arrays))] = value
        return name
    if isinstance(value, Rows | Cost | np.generic | Enum):
        return to_json_values(value)
    if isinstance(value, tuple | list):
        return [_value(part, arrays) for part in value]
    if isinstance(value, dict):
        return {key: _value(part, arrays) for key, part in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise DataError(
        f"a {type(value).__name__} in a reading cannot be saved: keep numbers, words, "
        "arrays and lists or dicts of them"
    )


def _made(header: "_Header", archive: zipfile.ZipFile, path: str | Path) -> "Reading":
    kind = _kind(header.kind)
    if kind is None:
        raise DataError(
            f"{path} holds a {header.kind!r}, a kind of reading that is not known "
            "here: read it with the theodolite that wrote it"
        )
    known = {f.name for f in fields(kind)}
    optional = {
        f.name for f in fields(kind) if (f.default, f.default_factory) != _REQUIRED
    }
    if not known - optional <= set(header.fields) <= known:
        odd = ", ".join(sorted(known ^ set(header.fields)))
        raise DataError(
            f"{path} holds a {kind.__name__} with other fields than this version's "
            f"({odd}): read it with the theodolite that wrote it"
        )

    def hook(type_: type, value: Any) -> Any:
        return _array(archive, f"{value}.npy") if type_ is np.ndarray else type_(value)

    types, values = get_type_hints(kind), {}
    for name, value in header.fields.items():
        if name == "readings" and isinstance(value, list):  # each of its own kind
            inner = (read_value(_Header, part) for part in value)
            values[name] = tuple(_made(part, archive, path) for part in inner)
        else:
            values[name] = read_value(types[name], value, hook)
    reading = kind(**values)
    for name in kind.dims:
        if np.asarray(getattr(reading, name)).dtype.kind not in "biuf":
            raise ValueError(name)
    reading.check()
    return reading


def _kind(name: str) -> type["Reading"] | None:
    """Return a kind of reading by its name, among those public or else loaded."""
    from .reading import Reading

    for package in map(import_module, _PACKAGES):
        if name in package.__all__:
            kind = getattr(package, name)
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
