"""Classes of a named dataset as unit vectors, some to train on and some held out."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from theodolite import data
from theodolite.core import ConfigError, stream

# Datasets of one split, of which what is not trained on is held out.
WITHOUT_TEST = ("mnist5k",)


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitClasses:
    """Samples of some classes."""

    inputs: np.ndarray  # a row of Euclidean norm 1 a training sample
    labels: np.ndarray  # its class, from 0 up
    test_inputs: np.ndarray  # rows held out
    test_labels: np.ndarray  # their classes

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.labels.max()) + 1


def split_classes(
    dataset: str,
    classes: tuple[int, ...],
    *,
    each: int,
    coarse: int,
    trial: int,
    held: int = 0,
) -> SplitClasses:
    """Return training samples, equally many of each class, and samples held out.

    If a dataset has no test split, the remaining samples are held out. ``each``
    and ``held`` limit the samples of a class, 0 for all. Squares of ``coarse`` pixels
    are averaged into one. The trial draws the training samples; where all are used,
    every trial has them in one order.
    """
    images, labels = _images(dataset, "train", classes, coarse)
    left = dataset in WITHOUT_TEST
    rng = stream(trial, "training samples")
    kept, rest = [], []
    for place in range(len(classes)):
        mine = np.flatnonzero(labels == place)
        mine = rng.permutation(mine) if each else mine
        count = each or len(mine)
        if count > len(mine) - left:
            raise ConfigError(
                f"{each or 'all'} samples of class {classes[place]} were asked for and "
                f"{dataset} has {len(mine)}: pass at most {len(mine) - left}"
            )
        kept.append(mine[:count])
        rest.append(mine[count:])
    chosen = np.concatenate(kept)
    others = images, labels
    if not left:
        others = _images(dataset, "test", classes, coarse)
        rest = [np.flatnonzero(others[1] == place) for place in range(len(classes))]
    new = np.concatenate([mine[: held or None] for mine in rest])
    return SplitClasses(
        inputs=images[chosen],
        labels=labels[chosen],
        test_inputs=others[0][new],
        test_labels=others[1][new],
    )


def flipped(labels: np.ndarray, share: float, *, trial: int) -> np.ndarray:
    """Return labels with a random share, set by the trial, moved to another class."""
    rng = stream(trial, "flipped labels")
    classes = int(labels.max()) + 1
    wrong = rng.random(len(labels)) < share
    away = rng.integers(1, classes, size=len(labels))
    return np.where(wrong, (labels + away) % classes, labels)


@lru_cache(maxsize=4)
def _images(
    dataset: str, split: str, classes: tuple[int, ...], coarse: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm 1 and their classes by place."""
    whole = data.load(dataset, split)
    kept = whole.subset(np.isin(whole.labels, classes))
    images = kept.images
    side = images.shape[1]
    if side % coarse or coarse < 1:
        raise ConfigError(
            f"coarse is {coarse} and images are {side} pixels wide: pass a divisor"
        )
    less = side // coarse
    blocks = images.reshape(len(images), less, coarse, less, coarse, -1)
    rows = blocks.mean(axis=(2, 4), dtype=np.float64).reshape(len(images), -1)
    order = np.argsort(classes)
    places = order[np.searchsorted(np.sort(classes), kept.labels)]
    return data.unit_norm(rows), places


SIDE = 4  # digits of 8 x 8 pixels are averaged to 4 x 4


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoClasses:
    """Samples of two classes, equally many of each."""

    inputs: np.ndarray  # a row of Euclidean norm 1 a sample
    labels: np.ndarray  # -1 or +1


def two_digits(
    samples: int, *, split: str = "train", classes: tuple[int, int] = (3, 8)
) -> TwoClasses:
    """Return the first samples of each of two classes, half of them of each.

    The number is even, and smaller where the split has fewer.
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
