"""A few images of a named dataset, standardised as the paper's."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from theodolite import data
from theodolite.core import ConfigError, stream


@dataclass(frozen=True, kw_only=True, eq=False)
class FewImages:
    """Grey images (samples, 1, side, side) and their classes."""

    images: np.ndarray
    labels: np.ndarray


def few_images(
    dataset: str, samples: int, *, seed: int, standardised: bool = True
) -> FewImages:
    """Draw images at random from a training set.

    Args:
        dataset: Named dataset of grey images.
        samples: How many, without repetition.
        seed: Of the draw.
        standardised: Whether pixels have mean 0 and deviation 1 over all of the set,
            as the paper says, or lie between 0 and 1, as in its published script.
    """
    images, labels = _images(dataset, standardised)
    if not 2 <= samples <= len(labels):
        raise ConfigError(
            f"samples is {samples}: {dataset} has {len(labels)}, and batch "
            "normalisation wants at least 2"
        )
    drawn = stream(seed, "images").choice(len(labels), size=samples, replace=False)
    return FewImages(images=images[drawn], labels=labels[drawn])


@cache
def _images(dataset: str, standardised: bool) -> tuple[np.ndarray, np.ndarray]:
    found = data.load(dataset, "train")
    if found.inputs.ndim != 3:
        raise ConfigError(
            f"{dataset} has inputs of shape {found.inputs.shape[1:]}: grey images are "
            "wanted, such as those of mnist5k or digits"
        )
    if standardised:
        images, _ = data.standardise_channels(found.inputs, np.float64)
    else:
        whole = np.asarray(found.inputs, dtype=np.float64)
        images = whole / whole.max()
    return images.reshape(len(images), 1, *found.inputs.shape[1:]), found.labels
