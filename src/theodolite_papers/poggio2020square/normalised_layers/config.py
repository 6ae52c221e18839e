"""Sizes of weight- and batch-normalised layers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import stream
from theodolite.studies import StudyConfig

# A batch of one unit whose Jacobian is known.
BATCH, EPS = (1.0, 2.0, 4.0, 7.0), 0.1
# Lengths of v at which weight normalisation is differentiated, and its g.
LENGTHS, GAIN = (1.0, 2.0), 1.5
KERNELS = (3, 5)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random layers and batches."""

    features: int = 5  # inputs of a layer
    units: int = 6  # units of a batch-normalised layer
    samples: int = 16  # size of a batch
    image: tuple[int, ...] = (8, 16, 32)  # sides of the images that convolutions see


PRESETS = {
    "smoke": Config(n_seeds=4),
    "quick": Config(n_seeds=20),
    "paper": Config(n_seeds=200),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per kind of layer."""
    del config
    return [{"part": part} for part in ("weight norm", "batch norm", "convolution")]


def regression(config: Config, trial: int) -> tuple[np.ndarray, ...]:
    """Return inputs, targets, a unit vector of weights and a probe."""
    rng = stream(config.seed, "normalised", trial)
    x = rng.normal(size=(config.samples, config.features))
    y, v, probe = (rng.normal(size=n) for n in (config.samples, *2 * [config.features]))
    return x, y, v / np.linalg.norm(v), probe
