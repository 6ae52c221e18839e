"""Samples, decays and norms of the classifiers whose error is bounded."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, stream
from theodolite.studies import StudyConfig

INPUTS = 16


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Classifiers of two digits, separable points, and points of the plane."""

    samples: int = 200  # training samples of the networks
    depth: int = 3  # layers L of the networks
    # Weight decays λ, which end at different norms ρ.
    decays: tuple[float, ...] = (1.0, 0.1, 0.01)
    steps: int = 300  # steps of gradient descent
    delta: float = 0.05  # the bound may fail with this probability
    points: int = 6  # points whose signs are all listed
    draws: int = 100  # sets of samples over which the bound must cover
    drawn: int = 200  # samples of each
    # Norms ρ of the classes whose complexity is measured.
    norms: tuple[float, ...] = (0.5, 1.0, 3.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < 1:
            raise ConfigError(f"delta is {self.delta}: pass a number between 0 and 1")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units from the inputs to the output."""
        return (INPUTS,) * self.depth + (1,)


PRESETS = {
    "smoke": Config(n_seeds=3, steps=200),
    "quick": Config(n_seeds=5, points=8),
    "paper": Config(n_seeds=20, steps=10_000, points=10),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell of networks, of linear classifiers, of signs, of draws."""
    return [{"part": part} for part in ("networks", "linear", "signs", "draws")]


def separable(config: Config, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return fewer points than dimensions, which any labels separate, and labels."""
    rng = stream(config.seed, "separable points", trial)
    x = rng.normal(size=(6, 8))
    x[0] *= 4  # a far point, which the widest margin need not touch
    return x, np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])


def plane(config: Config, trial: int) -> np.ndarray:
    """Return random points of the plane."""
    rng = stream(config.seed, "points of the plane", trial)
    return rng.normal(size=(config.points, 2))
