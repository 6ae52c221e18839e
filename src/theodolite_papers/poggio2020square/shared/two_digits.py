"""Two classes of handwritten digits as unit vectors with labels -1 and +1."""

from dataclasses import dataclass

import numpy as np

from theodolite import data
from theodolite.core import ConfigError

SIDE = 4  # digits of 8 x 8 pixels are averaged to 4 x 4


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoClasses:
    """Samples of two classes, equally many of each.

    Attributes:
        inputs: A row of Euclidean norm 1 a sample.
        labels: -1 or +1.
    """

    inputs: np.ndarray
    labels: np.ndarray


def two_digits(
    samples: int, *, split: str = "train", classes: tuple[int, int] = (3, 8)
) -> TwoClasses:
    """Return the first samples of each of two classes, half of them of each.

    Args:
        samples: How many, an even number; fewer where the split has fewer.
        split: "train" or "test".
        classes: The digits.
    """
    if samples < 2 or samples % 2:
        raise ConfigError(f"samples is {samples}: pass an even number from 2 up")
    kept = data.two_classes(data.load("digits", split), *classes)
    labels = kept.signs()
    each = min(samples // 2, *(int((labels == sign).sum()) for sign in (-1, 1)))
    chosen = np.concatenate(
        [np.flatnonzero(labels == sign)[:each] for sign in (-1.0, 1.0)]
    )
    images = kept.images[chosen].reshape(-1, SIDE, 2, SIDE, 2).mean(axis=(2, 4))
    return TwoClasses(
        inputs=data.unit_norm(images.reshape(len(chosen), -1)), labels=labels[chosen]
    )
