"""The data of figures 7 and 8."""

import numpy as np

from theodolite.data import load, whiten

from ..whitened import whitened
from .config import RateConfig


def inputs(config: RateConfig) -> tuple[np.ndarray, np.ndarray]:
    """Return the whitened data of a config."""
    if not config.samples:
        return whitened(config.dataset, config.width)
    dataset = load(config.dataset)
    some = np.linspace(0, len(dataset) - 1, config.samples).astype(int)
    flat = dataset.flat()[some]
    return whiten(flat, k=config.width).apply(flat), dataset.one_hot()[some]
