"""IDX files, the format of MNIST, gzipped or plain.

Two zero bytes, a type byte (8 for unsigned bytes), the number of dimensions, each
dimension as a big-endian 32-bit number, then the values. The header is read first, and
no more is inflated than it declares, within what the file and the memory can hold.
"""

import gzip
import math
from pathlib import Path

import numpy as np

from theodolite.core import DataError

from .files import check_memory, escape, reason_of, size_of

_UNSIGNED_BYTE = 8
# No gzipped set of small images is larger; plain files of any size are mapped.
_MOST_INFLATED = 2**31
# Deflate makes at most 1,032 bytes of one (zlib's technical details).
_MOST_RATIO = 1032


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read an IDX file of unsigned bytes; a plain one is memory-mapped.

    Args:
        path: File; gzipped if its name ends in ``.gz``.
        dimensions: 3 for images, 1 for labels.
    """
    size = size_of(path)
    read = _read_packed if path.suffix == ".gz" else _read_plain
    try:
        return read(path, dimensions, size)
    except DataError:
        raise
    except Exception as error:  # decoders raise almost anything
        raise DataError(
            f"{escape(path)} cannot be read as an IDX file ({reason_of(error)}): it is "
            "cut off or damaged, or may not be read; copy or download it again"
        ) from error


def _read_plain(path: Path, dimensions: int, size: int) -> np.ndarray:
    start = 4 + 4 * dimensions
    with path.open("rb") as stream:
        shape = _shape(path, stream.read(start), dimensions)
    _check_length(path, shape, size - start)
    return np.memmap(path, np.uint8, "r", offset=start, shape=shape)


def _read_packed(path: Path, dimensions: int, size: int) -> np.ndarray:
    with gzip.open(path) as stream:
        shape = _shape(path, stream.read(4 + 4 * dimensions), dimensions)
        declared = math.prod(shape)
        if declared > _MOST_RATIO * size:
            raise DataError(
                f"{escape(path)} declares {declared:,} bytes for the shape {shape}, "
                f"and its {size:,} gzipped ones cannot hold that many: it is damaged; "
                "copy or download it again"
            )
        if declared > _MOST_INFLATED:
            raise DataError(
                f"{escape(path)} would inflate to {declared:,} bytes, and gzipped sets "
                f"of at most {_MOST_INFLATED:,} are read: unpack it with gunzip, since "
                "plain files are mapped, or check where it comes from"
            )
        check_memory(path, declared)
        body = stream.read(declared + 1)
    _check_length(path, shape, len(body))
    return np.frombuffer(body, np.uint8).reshape(shape)


def _shape(path: Path, head: bytes, dimensions: int) -> tuple[int, ...]:
    wanted = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if head[:4] != wanted:
        raise DataError(
            f"{escape(path)} begins with {head[:4].hex(' ') or 'nothing'}, an IDX file "
            f"of {dimensions}-dimensional bytes begins with {wanted.hex(' ')}: check "
            "that images and labels are not swapped, or download it again"
        )
    shape = tuple(
        int(size) for size in np.frombuffer(head[4:], ">u4", len(head) // 4 - 1)
    )
    if len(shape) != dimensions or not 0 < math.prod(shape) < 2**40:
        raise DataError(
            f"{escape(path)} declares the shape {shape}, wanted {dimensions} positive "
            "sizes: it is cut off or damaged; copy or download it again"
        )
    return shape


def _check_length(path: Path, shape: tuple[int, ...], length: int) -> None:
    if length != math.prod(shape):
        came = "more" if length > math.prod(shape) else f"{length:,}"
        raise DataError(
            f"{escape(path)} declares {math.prod(shape):,} bytes for the shape {shape} "
            f"and holds {came}: it is cut off or damaged; copy or download it again"
        )
