"""CIFAR batches in three formats: Python pickles, binary records, delta-coded xz.

Images come out as (N, 32, 32, 3) uint8 in the order of the original batches, labels
as uint8: (N,) for CIFAR-10, the columns coarse and fine for CIFAR-100.
"""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.core import DataError

from .files import SplitFiles, call_reader, escape, read_limited, read_xz, size_of
from .plain_pickle import read_plain_pickle

_PIXELS = 3 * 32 * 32
# Images in the largest file of each set: a fifth of CIFAR-10, all of CIFAR-100.
_MOST_IMAGES = {1: 10_000, 2: 50_000}
_NPY_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0}
_LABEL_KEYS = {1: ("labels",), 2: ("coarse_labels", "fine_labels")}

Arrays = tuple[np.ndarray, np.ndarray]


def read_cifar10(split: SplitFiles) -> Arrays:
    """Read a split of CIFAR-10."""
    return _read(split, 1)


def read_cifar100(split: SplitFiles) -> Arrays:
    """Read a split of CIFAR-100."""
    return _read(split, 2)


def _read(split: SplitFiles, n_labels: int) -> Arrays:
    if split.format == "delta xz":
        return _read_delta(split.files[:-1], split.files[-1])
    read = read_pickle if split.format == "pickle" else read_binary
    batches = [read(file, n_labels) for file in split.files]
    images, labels = zip(*batches, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def read_pickle(path: Path, n_labels: int) -> Arrays:
    """Read a batch that Python pickled, running nothing in it."""
    batch = read_plain_pickle(path)
    keys = _LABEL_KEYS[n_labels]
    if absent := [key for key in ("data", *keys) if key not in batch]:
        raise DataError(
            f"{escape(path)} has the entries {_listed(batch)} and lacks "
            f"{', '.join(absent)}: check which dataset it belongs to"
        )
    pixels = batch["data"]
    if not isinstance(pixels, np.ndarray) or pixels.shape[1:] != (_PIXELS,):
        raise DataError(
            f"{escape(path)} holds data of shape {getattr(pixels, 'shape', None)}, "
            f"wanted (N, {_PIXELS}): unpack the archive again"
        )
    if pixels.size and not 0 <= pixels.min() <= pixels.max() <= 255:
        raise DataError(
            f"{escape(path)} has pixels from {pixels.min()} to {pixels.max()}, wanted "
            "0 to 255: it is damaged; unpack the archive again"
        )
    columns = [_byte_labels(path, batch[key], len(pixels)) for key in keys]
    return _images(pixels), _columns(columns)


def read_binary(path: Path, n_labels: int) -> Arrays:
    """Read a batch of records: label bytes, then planes R, G, B."""
    size = n_labels + _PIXELS
    content = read_limited(path, _MOST_IMAGES[n_labels] * size, "a CIFAR batch")
    if not content or len(content) % size:
        raise DataError(
            f"{escape(path)} has {len(content):,} bytes, not a whole number of records "
            f"of {size:,} bytes: it is cut off or another dataset's; unpack the "
            "archive again"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    columns = [records[:, place] for place in range(n_labels)]
    return _images(records[:, n_labels:]), _columns(columns)


def read_delta(path: Path) -> np.ndarray:
    """Read the images of a delta-coded batch.

    The file holds planes R-G, G, B-G (mod 256), each differenced along rows and
    columns, so two cumulative sums and two additions undo it.
    """
    content = read_xz(path, _MOST_IMAGES[1] * _PIXELS, "a CIFAR batch")
    if not content or len(content) % _PIXELS:
        raise DataError(
            f"{escape(path)} decodes to {len(content):,} bytes, not a whole number of "
            f"images of {_PIXELS:,} bytes: it is cut off or damaged; copy it again"
        )
    planes = np.frombuffer(content, np.uint8).reshape(3, -1, 32, 32)
    planes = planes.cumsum(2, dtype=np.uint8).cumsum(3, dtype=np.uint8)
    planes[0] += planes[1]
    planes[2] += planes[1]
    return np.ascontiguousarray(planes.transpose(1, 2, 3, 0))


def _read_delta(files: Sequence[Path], labels: Path) -> Arrays:
    # lzma works outside the interpreter lock, so threads decode side by side.
    with ThreadPoolExecutor() as pool:
        images = np.concatenate(list(pool.map(read_delta, files)))
    content = call_reader(labels, _read_npy)
    return images, _byte_labels(labels, content, len(images))


def _read_npy(path: Path) -> np.ndarray:
    size = size_of(path)
    with path.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        read = _NPY_HEADERS.get(version, np.lib.format.read_array_header_2_0)
        shape, _, dtype = read(stream)
        held = size - stream.tell()
        # Before any memory is taken for what a header declares.
        if not dtype.hasobject and math.prod(shape) * dtype.itemsize != held:
            raise ValueError(f"shape {shape} of {dtype} is not {held:,} bytes")
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)


def _byte_labels(path: Path, labels: Any, wanted: int) -> np.ndarray:
    if isinstance(labels, list) and not all(type(label) is int for label in labels):
        raise DataError(
            f"{escape(path)} has labels that are not whole numbers: one per image "
            "is wanted; copy it or unpack its archive again"
        )
    try:
        values = np.asarray(labels)
    except (OverflowError, ValueError):
        values = np.asarray(None)
    if values.shape != (wanted,) or values.dtype.kind not in "iu":
        raise DataError(
            f"{escape(path)} has labels of shape {values.shape} and type {values.dtype}"
            f" for {wanted} images: one whole number per image is wanted; copy it or "
            "unpack its archive again"
        )
    if values.min(initial=0) < 0 or values.max(initial=0) > 255:
        raise DataError(
            f"{escape(path)} has labels from {values.min()} to {values.max()}, wanted "
            "classes from 0 up: it is damaged; copy it or unpack its archive again"
        )
    return values.astype(np.uint8)


def _listed(names: Iterable[str]) -> str:
    """Return the first names, shortened, for a message."""
    return ", ".join(escape(name[:20]) for name in sorted(names)[:5]) or "none"


def _images(pixels: np.ndarray) -> np.ndarray:
    planes = pixels.astype(np.uint8, copy=False).reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _columns(columns: list[np.ndarray]) -> np.ndarray:
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
