"""The data of figures 7 and 8."""

import numpy as np

from theodolite.data import load, whiten
from theodolite.studies.li2016demystifying.shared.final_losses.config import RateConfig
from theodolite.studies.li2016demystifying.shared.whitened import whitened


def inputs(config: RateConfig) -> tuple[np.ndarray, np.ndarray]:
    """Return the whitened data of a config."""
    if not config.samples:
        return whitened(config.dataset, config.width)
    dataset = load(config.dataset)
    some = np.linspace(0, len(dataset) - 1, config.samples).astype(int)
    flat = dataset.flat()[some]
    return whiten(flat, k=config.width).apply(flat), dataset.one_hot()[some]
