"""A folder of images with one subfolder per class."""

import math
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.core import ConfigError, DataError, Exclusive

from .cache import cached
from .checksums import Decoded, decoded
from .dataset import Dataset
from .files import (
    check_memory,
    data_folder,
    escape,
    is_folder,
    is_regular,
    reason_of,
    sorted_entries,
)

ORIGIN = "Images of the user's own, one folder per class."
WANTED = "<class>/<images> or <split>/<class>/<images>"
HOW_TO = (
    "put PNG, JPEG, PPM or BMP files into one folder per class, <class>/… or "
    "train/<class>/… in the data folder"
)
SPLITS = ("train", "val", "test")
_SUFFIXES = {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".bmp"}
# Pillow may try no other format: some of its readers start programs (PostScript) or
# are seldom maintained.
_FORMATS = ("PNG", "JPEG", "PPM", "BMP")
# Pillow's default limit, even if a program raised it: 1 GiB / 4 / 3 pixels.
_MOST_PIXELS = 2**30 // 4 // 3
_GREY = {"1", "L"}
_COLOUR = {"P", "RGB", "RGBA", "LA", "CMYK", "YCbCr"}


def load_imagefolder(
    split: str,
    folder: str | Path | None = None,
    *,
    size: int | tuple[int, int] | None = None,
) -> Dataset:
    """Return the images of ``DIR/<split>/<class>`` or, for train, ``DIR/<class>``.

    Classes and files are in alphabetical order. Images are grey (N, H, W) if all
    files are, otherwise RGB (N, H, W, 3).

    Args:
        split: ``"train"``, ``"val"`` or ``"test"``.
        folder: DIR; THEODOLITE_DATA by default.
        size: Height and width, or both in one number, to resize to with bilinear
            interpolation; by default all files must have one size.
    """
    target = _size(size)
    classes = find_classes(split, folder)
    files = [file for members in classes.values() for file in members]
    numbers = [n for n, members in enumerate(classes.values()) for _ in members]

    def build() -> Decoded:
        return decoded(_read_all(files, target), np.array(numbers))

    sides = "own" if target is None else f"{target[0]}x{target[1]}"
    arrays = cached(f"imagefolder-{split}-{sides}", files, build)
    return Dataset(
        name="imagefolder",
        split=split,
        inputs=arrays.inputs,
        labels=arrays.labels,
        class_names=tuple(classes),
        origin=ORIGIN,
    )


def find_classes(split: str, folder: str | Path | None) -> dict[str, list[Path]]:
    """Return the image files of each class; raise if a class is empty."""
    root = data_folder("imagefolder", folder, WANTED)
    if is_folder(root / split):
        root = root / split
    elif split != "train" or any(is_folder(root / other) for other in SPLITS):
        raise DataError(
            f"imagefolder {split} was not found: {escape(root / split)} is no folder; "
            f"{HOW_TO}"
        )
    classes = {
        _class_name(path): _images_in(path)
        for path in sorted_entries(root)
        # A broken link is refused here: it may have been a class.
        if not path.name.startswith(".") and not is_regular(path) and is_folder(path)
    }
    empty = [name for name, files in classes.items() if not files]
    if not classes or empty:
        what = f"{escape(root)} is empty"
        if empty:
            what = f"{escape(root / empty[0])} holds no images"
        raise DataError(f"imagefolder {split}: {what}; {HOW_TO}")
    return classes


def _images_in(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted_entries(folder)
        if path.suffix.lower() in _SUFFIXES
        and not path.name.startswith(".")
        and is_regular(path)
    ]


def _class_name(folder: Path) -> str:
    """Return the name of a class, which must be printable."""
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in folder.name):
        raise DataError(
            f"{escape(folder)} names a class with letters that are no text: rename the "
            "folder"
        )
    return folder.name


def _read_all(files: list[Path], target: tuple[int, int] | None) -> np.ndarray:
    with _strictly():
        facts = [_look(file) for file in files]
        shape = target or facts[0][0]
        for file, (own, _) in zip(files, facts, strict=True):
            if target is None and own != shape:
                raise DataError(
                    f"{escape(file)} is {own[0]}×{own[1]} and {escape(files[0])} is "
                    f"{shape[0]}×{shape[1]} (height × width): images need one size; "
                    f"pass size={min(shape)} to resize all"
                )
        mode = "L" if all(mode in _GREY for _, mode in facts) else "RGB"
        tail = () if mode == "L" else (3,)
        what = f"{len(files):,} images of {shape[0]}×{shape[1]} pixels"
        check_memory(what, len(files) * math.prod(shape) * math.prod(tail))
        images = np.empty((len(files), *shape, *tail), dtype=np.uint8)
        for place, file in enumerate(files):
            images[place] = _pixels(file, mode, shape)
    return images


def _look(file: Path) -> tuple[tuple[int, int], str]:
    """Return height, width and colour mode from an image's header."""
    with _open(file) as image:
        if image.mode not in _GREY | _COLOUR:
            raise DataError(
                f"{escape(file)} has pixels of mode {image.mode}, wanted 8-bit grey or "
                "colour: convert it, for instance to an RGB PNG"
            )
        if image.height * image.width > _MOST_PIXELS:
            raise DataError(
                f"{escape(file)} declares {image.height}×{image.width} pixels, at most "
                f"{_MOST_PIXELS:,} are read: cut or shrink the image"
            )
        return (image.height, image.width), image.mode


def _pixels(file: Path, mode: str, shape: tuple[int, int]) -> np.ndarray:
    with _open(file) as image:
        try:
            image = image.convert(mode)
        except Exception as error:  # decoders raise almost anything
            raise _bad(file, error) from error
        if (image.height, image.width) != shape:
            image = image.resize(shape[::-1], _pillow().Resampling.BILINEAR)
        return np.asarray(image)


@contextmanager
def _strictly() -> Iterator[None]:
    """Make Pillow refuse absurd sizes and images that are cut off."""
    _pillow()
    from PIL import Image, ImageFile

    with Exclusive(interruptible=True), warnings.catch_warnings():
        lenient = ImageFile.LOAD_TRUNCATED_IMAGES
        try:
            ImageFile.LOAD_TRUNCATED_IMAGES = False
            # Pillow's other remarks do not matter.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = lenient


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise DataError(
            "imagefolder reads images with Pillow, which is not installed: run "
            "pip install pillow"
        ) from None
    return Image


def _open(file: Path) -> Any:
    try:
        return _pillow().open(file, formats=_FORMATS)
    except DataError:
        raise
    except Exception as error:  # decoders raise almost anything
        raise _bad(file, error) from error


def _bad(file: Path, error: Exception) -> DataError:
    return DataError(
        f"{escape(file)} cannot be read as an image ({type(error).__name__}: "
        f"{reason_of(error)}): {', '.join(_FORMATS)} are read; replace the file or "
        "remove it"
    )


def _size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    whole = isinstance(size, int | float | str)
    pair = (size, size) if whole or not np.iterable(size) else tuple(size)
    if len(pair) != 2 or any(
        isinstance(side, bool) or not isinstance(side, int) or side < 1 for side in pair
    ):
        raise ConfigError(
            f"size is {size!r}: pass a positive whole number, or height and width"
        )
    return pair
