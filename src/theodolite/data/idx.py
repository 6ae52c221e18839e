"""IDX files, the format of MNIST, gzipped or plain.

Two zero bytes, a type byte (8 for unsigned bytes), the number of dimensions, each
dimension as a big-endian 32-bit number, then the values.
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from theodolite.core import DataError

_UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read an IDX file of unsigned bytes; a plain one is memory-mapped.

    Args:
        path: File; gzipped if its name ends in ``.gz``.
        dimensions: 3 for images, 1 for labels.
    """
    start = 4 + 4 * dimensions
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                shape = _shape(path, stream.read(start), dimensions)
                body = stream.read(math.prod(shape) + 1)
            _check_length(path, shape, len(body))
            return np.frombuffer(body, np.uint8).reshape(shape)
        with path.open("rb") as stream:
            shape = _shape(path, stream.read(start), dimensions)
        _check_length(path, shape, path.stat().st_size - start)
        return np.memmap(path, np.uint8, "r", offset=start, shape=shape)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read as an IDX file ({error}): it is cut off or "
            "damaged; copy or download it again"
        ) from error


def _shape(path: Path, head: bytes, dimensions: int) -> tuple[int, ...]:
    wanted = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if head[:4] != wanted:
        raise DataError(
            f"{path} begins with {head[:4].hex(' ') or 'nothing'}, an IDX file of "
            f"{dimensions}-dimensional bytes begins with {wanted.hex(' ')}: check that "
            "images and labels are not swapped, or download it again"
        )
    shape = tuple(
        int(size) for size in np.frombuffer(head[4:], ">u4", len(head) // 4 - 1)
    )
    if len(shape) != dimensions or not 0 < math.prod(shape) < 2**40:
        raise DataError(
            f"{path} declares the shape {shape}, wanted {dimensions} positive sizes: "
            "it is cut off or damaged; copy or download it again"
        )
    return shape


def _check_length(path: Path, shape: tuple[int, ...], length: int) -> None:
    if length != math.prod(shape):
        came = "more" if length > math.prod(shape) else f"{length:,}"
        raise DataError(
            f"{path} declares {math.prod(shape):,} bytes for the shape {shape} and "
            f"holds {came}: it is cut off or damaged; copy or download it again"
        )
