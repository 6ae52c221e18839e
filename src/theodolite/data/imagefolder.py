"""A folder of images with one folder a class."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.core import ConfigError, DataError
from theodolite.data.cache import remembered
from theodolite.data.checksums import Decoded, decoded
from theodolite.data.dataset import Dataset
from theodolite.data.folders import data_folder

ORIGIN = "Images of the user's own, one folder a class."
WANTED = "<class>/<images> or <split>/<class>/<images>"
HOW_TO = (
    "put PNG, JPEG, PPM or BMP files into one folder a class, <class>/… or "
    "train/<class>/… in the data folder"
)
SPLITS = ("train", "val", "test")
_SUFFIXES = {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".bmp"}
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
    arrays = remembered(f"imagefolder-{split}-{sides}", files, build)
    return Dataset(
        name="imagefolder",
        split=split,
        inputs=arrays.inputs,
        labels=arrays.labels,
        class_names=tuple(classes),
        origin=ORIGIN,
    )


def find_classes(split: str, folder: str | Path | None) -> dict[str, list[Path]]:
    """Return the image files of each class, refusing empty ones."""
    root = data_folder("imagefolder", folder, WANTED)
    if (root / split).is_dir():
        root = root / split
    elif split != "train" or any((root / other).is_dir() for other in SPLITS):
        raise DataError(
            f"imagefolder {split} was not found: {root / split} is no folder; {HOW_TO}"
        )
    found = {
        path.name: _images_in(path)
        for path in sorted(root.iterdir())
        if path.is_dir() and not path.name.startswith(".")
    }
    empty = [name for name, files in found.items() if not files]
    if not found or empty:
        what = f"{root / empty[0]} holds no images" if empty else f"{root} is empty"
        raise DataError(f"imagefolder {split}: {what}; {HOW_TO}")
    return found


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in _SUFFIXES
        and not path.name.startswith(".")
        and path.is_file()
    )


def _read_all(files: list[Path], target: tuple[int, int] | None) -> np.ndarray:
    with warnings.catch_warnings():
        # An image of absurd size is refused; Pillow's other remarks do not matter.
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", _pillow().DecompressionBombWarning)
        facts = [_look(file) for file in files]
        shape = target or facts[0][0]
        for file, (own, _) in zip(files, facts, strict=True):
            if target is None and own != shape:
                raise DataError(
                    f"{file} is {own[0]}×{own[1]} and {files[0]} is {shape[0]}×"
                    f"{shape[1]} (height × width): images need one size; pass size="
                    f"{min(shape)} to resize all"
                )
        mode = "L" if all(mode in _GREY for _, mode in facts) else "RGB"
        tail = () if mode == "L" else (3,)
        images = np.empty((len(files), *shape, *tail), dtype=np.uint8)
        for place, file in enumerate(files):
            images[place] = _pixels(file, mode, shape)
    return images


def _look(file: Path) -> tuple[tuple[int, int], str]:
    """Return height, width and colour mode from an image's header."""
    with _open(file) as image:
        if image.mode not in _GREY | _COLOUR:
            raise DataError(
                f"{file} has pixels of mode {image.mode}, wanted 8-bit grey or colour: "
                "convert it, for instance to an RGB PNG"
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
        return _pillow().open(file)
    except DataError:
        raise
    except Exception as error:  # decoders raise almost anything
        raise _bad(file, error) from error


def _bad(file: Path, error: Exception) -> DataError:
    return DataError(
        f"{file} cannot be read as an image ({type(error).__name__}: "
        f"{str(error)[:80]}): replace the file or remove it"
    )


def _size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2 or any(
        isinstance(side, bool) or not isinstance(side, int) or side < 1 for side in pair
    ):
        raise ConfigError(
            f"size is {size!r}: pass a positive whole number, or height and width"
        )
    return pair
