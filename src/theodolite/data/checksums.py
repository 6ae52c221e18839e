"""Published checksums, and the check of arrays against them.

Where digests of the decoded arrays are known they decide, in any file format;
otherwise the files themselves must match byte for byte.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from theodolite.core import DataError

from .files import call_reader, escape

# SHA-256 of images (N, H, W[, C]) and labels, uint8 in C order, decoded from files
# that match the checksums below.
ARRAYS = {
    ("mnist", "train"): (
        "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
    ),
    ("mnist", "test"): (
        "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    ),
    ("cifar10", "train"): (
        "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
    ),
    ("cifar10", "test"): (
        "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    ),
}

# MD5 of the distributed files, as torchvision publishes them.
FILES = {
    "mnist": {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    "cifar100": {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    },
}

# SHA-1 of the binary distribution of CIFAR-10: 10,000 records of a label byte and
# 3,072 pixel bytes in planes R, G, B.
CIFAR10_BATCHES = {
    "data_batch_1": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "data_batch_2": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "data_batch_3": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "data_batch_4": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "data_batch_5": "26e2849e66a845b7f1e4614ae70f4889ae604628",
    "test_batch": "67eb016db431130d61cd03c7ad570b013799c88c",
}

# Shapes of the published images.
SHAPES = {
    ("mnist", "train"): (60_000, 28, 28),
    ("mnist", "test"): (10_000, 28, 28),
    ("fashion-mnist", "train"): (60_000, 28, 28),
    ("fashion-mnist", "test"): (10_000, 28, 28),
    ("cifar10", "train"): (50_000, 32, 32, 3),
    ("cifar10", "test"): (10_000, 32, 32, 3),
    ("cifar100", "train"): (50_000, 32, 32, 3),
    ("cifar100", "test"): (10_000, 32, 32, 3),
}


class OtherDataError(DataError):
    """The files hold another published dataset than the requested one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decoded:
    """Arrays as read from files, with their digests.

    Attributes:
        inputs: Images.
        labels: uint8 or int64 labels, (N,) or one column per kind of label.
        inputs_sha256: Digest of the inputs' bytes in C order.
        labels_sha256: Digest of the labels' bytes.
        files_match: Whether the files have their published MD5; None if unknown.
    """

    inputs: np.ndarray
    labels: np.ndarray
    inputs_sha256: str
    labels_sha256: str
    files_match: bool | None = None


def decoded(
    inputs: np.ndarray, labels: np.ndarray, files_match: bool | None = None
) -> Decoded:
    """Return two arrays with their digests."""
    return Decoded(
        inputs=inputs,
        labels=labels,
        inputs_sha256=sha256(inputs),
        labels_sha256=sha256(labels),
        files_match=files_match,
    )


def sha256(array: np.ndarray) -> str:
    """Return the SHA-256 of an array's bytes in C order.

    Example:
        >>> sha256(np.arange(3, dtype=np.uint8))[:12]
        'ae4b3280e56e'
    """
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def files_match(name: str, files: Sequence[Path]) -> bool | None:
    """Return whether files have their published MD5, None where none is published.

    Sets whose decoded arrays have a published digest do not need it: None.
    """
    known = FILES.get(name, {})
    if (name, "train") in ARRAYS or any(file.name not in known for file in files):
        return None
    return all(_md5(file) == known[file.name] for file in files)


def verify(
    name: str, split: str, arrays: Decoded, files: Sequence[Path], *, how_to: str
) -> bool:
    """Return whether arrays are verified; raise if they differ from the published ones.

    Args:
        name: Published dataset.
        split: ``"train"`` or ``"test"``.
        arrays: The arrays that were read.
        files: Their files: images first, then labels if separate.
        how_to: How to get the right files, for the message.
    """
    for (other, part), (digest, _) in ARRAYS.items():
        if digest == arrays.inputs_sha256 and other != name:
            raise OtherDataError(
                f"{escape(files[0])} holds the images of {other} {part}, not of {name}"
                f": load {other!r}, or {how_to}"
            )
    shape = SHAPES[name, split]
    if arrays.inputs.shape != shape:
        raise DataError(
            f"{escape(files[0])}: {name} {split} has shape {shape}, these files hold "
            f"{arrays.inputs.shape}; {how_to}, or pass verify=False to use them as "
            "they are"
        )
    wanted = ARRAYS.get((name, split))
    match = arrays.files_match
    if wanted is not None:
        match = (arrays.inputs_sha256, arrays.labels_sha256) == wanted
    if match is False:
        raise DataError(
            f"{_culprit(name, split, arrays, files)}; {how_to}, or pass verify=False "
            "to use it as it is"
        )
    return bool(match)


def _culprit(name: str, split: str, arrays: Decoded, files: Sequence[Path]) -> str:
    """Name the first file that differs, with the two checksums."""
    if name == "cifar10":
        return _cifar10_culprit(split, arrays, files)
    known = FILES.get(name, {})
    digests = (arrays.inputs_sha256, arrays.labels_sha256)
    wanted = ARRAYS.get((name, split), ("", ""))
    for file, digest, right in zip(files, digests, wanted, strict=False):
        if digest == right:
            continue
        md5 = _md5(file)
        if file.name in known and md5 != known[file.name]:
            return f"{escape(file)} has md5 {md5}, published is {known[file.name]}"
        if right:
            return (
                f"{escape(file)} decodes to sha256 {digest}, the published data to "
                f"{right}"
            )
    return f"{escape(files[0])} differs from the published file"


def _cifar10_culprit(split: str, arrays: Decoded, files: Sequence[Path]) -> str:
    """Rebuild the binary batches to find the one that differs."""
    batches = [
        batch for batch in CIFAR10_BATCHES if ("test" in batch) == (split == "test")
    ]
    for place, batch in enumerate(batches):
        part = slice(10_000 * place, 10_000 * (place + 1))
        sha1 = cifar_record_sha1(arrays.inputs[part], arrays.labels[part])
        if sha1 != CIFAR10_BATCHES[batch]:
            return (
                f"{escape(files[place])} and its labels make a {batch}.bin of sha1 "
                f"{sha1}, published is {CIFAR10_BATCHES[batch]}"
            )
    return f"{escape(files[0])} differs from the published file"


def cifar_record_sha1(images: np.ndarray, labels: np.ndarray) -> str:
    """Return the SHA-1 that images (N, 32, 32, 3) have as a CIFAR-10 ``.bin`` file."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    records = np.concatenate([labels.astype(np.uint8)[:, None], planes], axis=1)
    return hashlib.sha1(records.data, usedforsecurity=False).hexdigest()


def _md5(file: Path) -> str:
    def digest(file: Path) -> str:
        with file.open("rb") as stream:
            return hashlib.file_digest(
                stream, lambda: hashlib.md5(usedforsecurity=False)
            ).hexdigest()

    return call_reader(file, digest)
