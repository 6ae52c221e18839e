"""Mixtures of Gaussians, drawn from a seed."""

import numpy as np

from theodolite.core import ConfigError, stream
from theodolite.data.dataset import Dataset
from theodolite.data.files import check_memory

ORIGIN = "A mixture of isotropic Gaussians, drawn from a seed."


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
    for name, value in (
        ("n_samples", n_samples),
        ("n_classes", n_classes),
        ("width", width),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} is {value!r}: pass a whole number from 1 up")
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
        origin=ORIGIN,
    )
