"""Named datasets: one function loads any of them.

A process without the files can register a dataset that another one packed.
"""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from theodolite.core import DataError, unknown_name

from . import builtin, imagefolder
from .checksums import SHAPES
from .dataset import Dataset
from .files import reason_of
from .published import CIFAR10, CIFAR100, FASHION_MNIST, MNIST, Published

Folder = str | os.PathLike[str] | None
_REGISTERED: dict[tuple[str, str], Dataset] = {}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A registered dataset.

    Attributes:
        name: Name to pass to :func:`load`.
        kind: Whether it comes with a package, from a seed, or from the user's files.
        origin: One sentence on where it comes from.
        splits: Splits that exist.
        read: Loads a split from (split, folder, verify, options).
        find: For a dataset in files, returns (place, format) of a split or raises.
        options: Names of its options.
        sizes: Samples in each split, where they are fixed.
        how_to: How to get its files.
    """

    name: str
    kind: Literal["embedded", "generated", "folder"]
    origin: str
    splits: tuple[str, ...]
    read: Callable[[str, Path | None, bool, dict[str, Any]], Dataset]
    find: Callable[[str, Path | None], tuple[Path, str]] | None = None
    options: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    how_to: str = ""


def load(
    name: str,
    split: str = "train",
    *,
    folder: Folder = None,
    verify: bool = True,
    **options: Any,
) -> Dataset:
    """Load a dataset by name.

    ``digits``, ``mnist5k`` and ``gaussians`` need no files. ``mnist``,
    ``fashion-mnist``, ``cifar10``, ``cifar100`` and ``imagefolder`` are read from a
    folder, decoded once into the cache and memory-mapped from then on.

    Args:
        name: Registered name; :func:`available` lists them.
        split: ``"train"`` or ``"test"``.
        folder: Where files are; by default the environment's THEODOLITE_DATA.
        verify: Refuse a published dataset whose checksum or size is wrong.
        **options: ``gaussians``: n_samples, n_classes, width, separation, spread,
            seed; ``cifar100``: labels (``"fine"`` or ``"coarse"``); ``imagefolder``:
            size.

    Raises:
        UnknownNameError: No such dataset or option.
        DataError: Files are missing, damaged or not the published ones.

    Example:
        >>> load("mnist5k")
        Dataset(mnist5k train: 5000×28×28 uint8, 10 classes, verified)
    """
    if name not in SOURCES:
        raise unknown_name("dataset", name, SOURCES)
    source = SOURCES[name]
    if split not in source.splits:
        raise DataError(
            f"{name} has no split {split!r}, only {', '.join(source.splits)}: ask for "
            "one of these, or hold samples out with subset()"
        )
    for option in options:
        if option not in source.options:
            raise unknown_name(f"option of {name}", option, source.options)
    registered = _REGISTERED.get((name, split))
    if registered is not None and folder is None and not options:
        return registered
    return source.read(split, as_path(folder), verify, options)


def as_path(folder: Folder) -> Path | None:
    """Return a folder that the user named as a path, or None."""
    try:
        return None if folder is None else Path(folder)
    except TypeError:
        raise DataError(
            f"folder is {str(folder)[:80]!r}, a {type(folder).__name__}: pass the path "
            "of a folder as text"
        ) from None


def needs_folder(name: str) -> bool:
    """Return whether a dataset is read from the user's files.

    Example:
        >>> needs_folder("mnist5k"), needs_folder("mnist")
        (False, True)
    """
    if name not in SOURCES:
        raise unknown_name("dataset", name, SOURCES)
    return SOURCES[name].kind == "folder"


def _published(entry: Published) -> Source:
    default = "fine" if "fine" in entry.kinds else "class"

    def read(
        split: str, folder: Path | None, verify: bool, options: dict[str, Any]
    ) -> Dataset:
        return entry.load(split, folder, verify, options.get("labels", default))

    def find(split: str, folder: Path | None) -> tuple[Path, str]:
        files = entry.find(split, folder)
        return files.place, files.format

    return Source(
        name=entry.name,
        kind="folder",
        origin=entry.origin,
        splits=("train", "test"),
        read=read,
        find=find,
        options=("labels",) if len(entry.kinds) > 1 else (),
        sizes={split: SHAPES[entry.name, split][0] for split in ("train", "test")},
        how_to=entry.how_to,
    )


def _find_images(split: str, folder: Path | None) -> tuple[Path, str]:
    classes = imagefolder.find_classes(split, folder)
    return next(iter(classes.values()))[0].parents[1], "images"


def _options(function: Callable[..., Dataset]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


_ALL = (
    Source(
        name="digits",
        kind="embedded",
        origin=builtin.DIGITS_ORIGIN,
        splits=("train", "test"),
        read=lambda split, folder, verify, options: builtin.load_digits(split),
        sizes=builtin.DIGITS_SIZES,
    ),
    Source(
        name="mnist5k",
        kind="embedded",
        origin=builtin.MNIST5K_ORIGIN,
        splits=("train",),
        read=lambda split, folder, verify, options: builtin.load_mnist5k(split),
        sizes=builtin.MNIST5K_SIZES,
    ),
    Source(
        name="gaussians",
        kind="generated",
        origin=builtin.GAUSSIANS_ORIGIN,
        splits=("train", "test"),
        read=lambda split, folder, verify, options: builtin.load_gaussians(
            split, **options
        ),
        options=_options(builtin.load_gaussians),
    ),
    _published(MNIST),
    _published(FASHION_MNIST),
    _published(CIFAR10),
    _published(CIFAR100),
    Source(
        name="imagefolder",
        kind="folder",
        origin=imagefolder.ORIGIN,
        splits=imagefolder.SPLITS,
        read=lambda split, folder, verify, options: imagefolder.load_imagefolder(
            split, folder, **options
        ),
        find=_find_images,
        options=_options(imagefolder.load_imagefolder),
        how_to=imagefolder.HOW_TO,
    ),
)
SOURCES: Mapping[str, Source] = {source.name: source for source in _ALL}


def register_dataset(dataset: Dataset) -> None:
    """Let :func:`load` return this dataset in this process instead of reading files.

    A call of ``load`` with a folder or an option still reads files.
    """
    _REGISTERED[dataset.name, dataset.split] = dataset


def unregister_dataset(name: str, split: str = "train") -> None:
    """Undo :func:`register_dataset`."""
    _REGISTERED.pop((name, split), None)


def pack_dataset(dataset: Dataset) -> dict[str, Any]:
    """Return a dataset as plain arrays and text, with its checksum."""
    return {
        "name": dataset.name,
        "split": dataset.split,
        # Not memory-mapped: the receiver may not have the file.
        "inputs": np.ascontiguousarray(np.asarray(dataset.inputs)),
        "labels": np.ascontiguousarray(np.asarray(dataset.labels)),
        "class_names": dataset.class_names,
        "origin": dataset.origin,
        "verified": dataset.verified,
        "checksum": dataset.checksum,
    }


def unpack_dataset(parcel: Mapping[str, Any], checksum: str | None = None) -> Dataset:
    """Return a packed dataset; raise if it was changed.

    Args:
        parcel: Result of :func:`pack_dataset`.
        checksum: Expected checksum; the parcel's own by default.

    Example:
        >>> digits = load("digits")
        >>> unpack_dataset(pack_dataset(digits)).checksum == digits.checksum
        True
    """
    try:
        contents = dict(parcel)
        wanted = str(contents.pop("checksum"))
        dataset = Dataset(**contents)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"a parcel that is no dataset ({reason_of(error)}): pass what "
            "pack_dataset() returned"
        ) from None
    for digest in {wanted, checksum or wanted}:
        if dataset.checksum != digest:
            raise DataError(
                f"{dataset.name} {dataset.split} arrived with the checksum "
                f"{dataset.checksum[:12]}…, wanted {digest[:12]}…: it was changed on "
                "its way; run again, or put the files on every node and set "
                "THEODOLITE_DATA there"
            )
    return dataset
