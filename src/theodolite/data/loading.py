"""Named datasets: one function loads any of them."""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from theodolite.core import DataError, unknown_name
from theodolite.data import embedded, gaussians, imagefolder
from theodolite.data.checksums import SHAPES
from theodolite.data.dataset import Dataset
from theodolite.data.provided import provided
from theodolite.data.published import CIFAR10, CIFAR100, FASHION_MNIST, MNIST, Published

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A registered dataset.

    Attributes:
        name: What :func:`load` is called with.
        kind: Whether it comes with a package, from a seed, or from the user's files.
        origin: One sentence on where it comes from.
        splits: Splits that exist.
        read: Loads a split from (split, folder, verify, options).
        find: For a dataset in files, returns (place, format) of a split or raises.
        options: Names of its own options.
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
    here = provided(name, split)
    if here is not None and folder is None and not options:
        return here
    return source.read(split, as_path(folder), verify, options)


def as_path(folder: Folder) -> Path | None:
    """Return a folder that a user named as a path."""
    try:
        return None if folder is None else Path(folder)
    except TypeError:
        raise DataError(
            f"folder is {str(folder)[:80]!r}, a {type(folder).__name__}: pass the path "
            "of a folder as text"
        ) from None


def needs_folder(name: str) -> bool:
    """Say whether a dataset is read from the user's own files.

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
        found = entry.find(split, folder)
        return found.place, found.format

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
        origin=embedded.DIGITS_ORIGIN,
        splits=("train", "test"),
        read=lambda split, folder, verify, options: embedded.load_digits(split),
        sizes=embedded.DIGITS_SIZES,
    ),
    Source(
        name="mnist5k",
        kind="embedded",
        origin=embedded.MNIST5K_ORIGIN,
        splits=("train",),
        read=lambda split, folder, verify, options: embedded.load_mnist5k(split),
        sizes=embedded.MNIST5K_SIZES,
    ),
    Source(
        name="gaussians",
        kind="generated",
        origin=gaussians.ORIGIN,
        splits=("train", "test"),
        read=lambda split, folder, verify, options: gaussians.load_gaussians(
            split, **options
        ),
        options=_options(gaussians.load_gaussians),
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
