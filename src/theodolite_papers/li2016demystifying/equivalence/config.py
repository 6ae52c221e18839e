"""Random problems on which 1-shortcut and plain networks are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, stream
from theodolite.studies import StudyConfig

from ..shared.problems import random_data

# Where a single matrix can have an activation: before or after it.
NONLINEAR: dict[str, dict[str, str]] = {
    "tanh after": {"post": "tanh"},
    "tanh before": {"pre": "tanh"},
    "relu before": {"pre": "relu"},
}


# Matrices per unit of networks of Eq 1, shortest network first.
UNITS = ((2, 3), (2, 3, 2, 2), (2, 3, 2, 2, 2, 3, 2, 2))
SHORTCUTS = ("orthogonal", "any")


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width."""

    width: int = 4  # width of all networks
    samples: int = 24  # samples per dataset
    depths: tuple[int, ...] = (2, 4, 8)  # matrices of the linear networks
    # Matrices of networks with an activation; deeper plain ReLU networks of this width
    # are often dead, and then have no Hessian.
    nonlinear_depths: tuple[int, ...] = (2, 4)
    trained: int = 6  # depth at which networks are trained
    steps: int = 100  # steps of gradient descent
    rate: float = 0.01  # its learning rate

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.depths) < 3:
            raise ConfigError(f"depths {self.depths}: growth wants at least three")

    @property
    def settings(self) -> list[tuple[str, dict[str, str], int]]:
        """Name, activations and depth of all pairs that are compared."""
        linear = [("linear", {}, depth) for depth in self.depths]
        return linear + [
            (name, positions, depth)
            for name, positions in NONLINEAR.items()
            for depth in self.nonlinear_depths
        ]


PRESETS = {
    "smoke": Config(n_seeds=4, steps=20),
    "quick": Config(n_seeds=6),
    "paper": Config(n_seeds=20, depths=(2, 4, 8, 12, 16), steps=200),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per task and network."""
    tasks = ("identity", "rotation", "training", "general")
    return [{"task": task, "trial": seed} for task in tasks for seed in config.seeds]


def dataset(config: Config, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the random inputs and targets of a trial."""
    return random_data(trial, samples=config.samples, width=config.width)


def shortcut_matrices(config: Config, kind: str, trial: int) -> np.ndarray:
    """Return the shortcuts $S^r$ of Eq 1: orthogonal ones, or Gaussian matrices."""
    shape = (len(UNITS[-1]), config.width, config.width)
    drawn = stream(trial, "shortcuts").normal(size=shape) / config.width**0.5
    return np.linalg.qr(drawn)[0] if kind == "orthogonal" else drawn
