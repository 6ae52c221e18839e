"""CIFAR batches in three formats: Python pickles, binary records, delta-coded xz.

Images come out as (N, 32, 32, 3) uint8 in the order of the original batches, labels
as uint8: (N,) for CIFAR-10, the columns coarse and fine for CIFAR-100.
"""

import lzma
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.core import DataError
from theodolite.data.folders import Found
from theodolite.data.plain_pickle import read_plain_pickle

_PIXELS = 3 * 32 * 32
_LABEL_KEYS = {1: ("labels",), 2: ("coarse_labels", "fine_labels")}

Arrays = tuple[np.ndarray, np.ndarray]


def read_cifar10(found: Found) -> Arrays:
    """Read a split of CIFAR-10 from whichever format was found."""
    return _read(found, 1)


def read_cifar100(found: Found) -> Arrays:
    """Read a split of CIFAR-100 from whichever format was found."""
    return _read(found, 2)


def _read(found: Found, n_labels: int) -> Arrays:
    if found.format == "delta xz":
        return _read_delta(found.files[:-1], found.files[-1])
    read = read_pickle if found.format == "pickle" else read_binary
    return _join([read(file, n_labels) for file in found.files])


def read_pickle(path: Path, n_labels: int) -> Arrays:
    """Read a batch that Python pickled, running nothing in it."""
    batch = read_plain_pickle(path)
    keys = _LABEL_KEYS[n_labels]
    if absent := [key for key in ("data", *keys) if key not in batch]:
        raise DataError(
            f"{path} has the entries {', '.join(sorted(batch)) or 'none'} and lacks "
            f"{', '.join(absent)}: check which dataset it belongs to"
        )
    pixels = batch["data"]
    if not isinstance(pixels, np.ndarray) or pixels.shape[1:] != (_PIXELS,):
        raise DataError(
            f"{path} holds data of shape {getattr(pixels, 'shape', None)}, wanted "
            f"(N, {_PIXELS}): unpack the archive again"
        )
    columns = [_byte_labels(path, batch[key], len(pixels)) for key in keys]
    return _images(pixels), _columns(columns)


def read_binary(path: Path, n_labels: int) -> Arrays:
    """Read a batch of records: label bytes, then planes R, G, B."""
    size = n_labels + _PIXELS
    content = _content(path, Path.read_bytes)
    if not content or len(content) % size:
        raise DataError(
            f"{path} has {len(content):,} bytes, not a whole number of records of "
            f"{size:,} bytes: it is cut off or another dataset's; unpack the archive "
            "again"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    columns = [records[:, place] for place in range(n_labels)]
    return _images(records[:, n_labels:]), _columns(columns)


def read_delta(path: Path) -> np.ndarray:
    """Read the images of a delta-coded batch.

    The file holds planes R-G, G, B-G (mod 256), each differenced along rows and
    columns, so two cumulative sums and two additions undo it.
    """
    content = _content(path, lambda file: lzma.decompress(file.read_bytes()))
    if not content or len(content) % _PIXELS:
        raise DataError(
            f"{path} decodes to {len(content):,} bytes, not a whole number of images "
            f"of {_PIXELS:,} bytes: it is cut off or damaged; copy it again"
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
    content = _content(labels, _read_npy)
    return images, _byte_labels(labels, content, len(images))


def _read_npy(path: Path) -> np.ndarray:
    with path.open("rb") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _content(path: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(path)
    except (OSError, EOFError, ValueError, MemoryError, lzma.LZMAError) as error:
        raise DataError(
            f"{path} cannot be read ({error}): it is cut off or damaged; copy it or "
            "unpack its archive again"
        ) from error


def _byte_labels(path: Path, labels: Any, wanted: int) -> np.ndarray:
    values = np.asarray(labels)
    if values.shape != (wanted,) or values.dtype.kind not in "iu":
        raise DataError(
            f"{path} has labels of shape {values.shape} and type {values.dtype} for "
            f"{wanted} images: one whole number an image is wanted; copy it or unpack "
            "its archive again"
        )
    if values.min(initial=0) < 0 or values.max(initial=0) > 255:
        raise DataError(
            f"{path} has labels from {values.min()} to {values.max()}, wanted classes "
            "from 0 up: it is damaged; copy it or unpack its archive again"
        )
    return values.astype(np.uint8)


def _images(pixels: np.ndarray) -> np.ndarray:
    planes = pixels.astype(np.uint8, copy=False).reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _columns(columns: list[np.ndarray]) -> np.ndarray:
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def _join(batches: list[Arrays]) -> Arrays:
    images, labels = zip(*batches, strict=True)
    return np.concatenate(images), np.concatenate(labels)
