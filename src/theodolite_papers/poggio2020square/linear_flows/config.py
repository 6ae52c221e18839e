"""Data, starts and steps of linear classifiers."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from theodolite.core import stream
from theodolite.studies import StudyConfig

from ..shared.rows import check_halving

# Samples and features of underdetermined data, and of data that fix the weights.
SHAPES = {"wide": (4, 6), "tall": (8, 4)}
# Norms at the start, the last on the other side of zero.
STARTS = (0.1, 1.0, 3.0, -0.5)
# Three unit inputs of one class, by symmetry best separated by (1, 0).
ANGLES = (math.pi / 3, -math.pi / 3, 0.0)
THREE_DECAYS = (0.5, 0.1)
THREE_START = (1.0, 0.4)
# Norms at which the direction (1, 0) is an equilibrium of the exponential loss.
AT_NORMS = (1.0, 5.0, 20.0)
LOSSES: tuple[Literal["square", "exponential"], ...] = ("square", "exponential")
SETTINGS: tuple[tuple[str, Literal["square", "exponential"], float], ...] = (
    ("wide", "square", 0.1),
    ("wide", "square", 0.0),
    ("tall", "square", 0.0),
    ("wide", "exponential", 0.1),
)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Linear classifiers from several starts, with decay and without."""

    # Steps of gradient descent, each half of the one before.
    rates: tuple[float, ...] = (0.02, 0.01, 0.005)
    horizon: float = 20.0  # when ends without decay are compared
    end: float = 120.0  # when descent with decay ends
    step: float = 0.1  # step of the map whose expansion is measured
    # Inputs, hidden units and output of networks under exponential loss.
    widths: tuple[int, ...] = (4, 8, 6, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_halving(self.rates)


PRESETS = {
    "smoke": Config(n_seeds=3, horizon=8.0, end=40.0),
    "quick": Config(n_seeds=10),
    "paper": Config(n_seeds=100, end=300.0, horizon=40.0),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per group of numbers."""
    del config
    return [{"part": part} for part in ("speeds", "ends", "points", "samples", "deep")]


def data(config: Config, shape: str, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit inputs and signs."""
    samples, features = SHAPES[shape]
    rng = stream(config.seed, "linear", shape, trial)
    inputs = rng.normal(size=(samples, features))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    return inputs, np.where(np.arange(samples) % 2, 1.0, -1.0)


def directions(config: Config, shape: str, trial: int) -> np.ndarray:
    """Return a unit direction for each start."""
    rng = stream(config.seed, "starts", shape, trial)
    drawn = rng.normal(size=(len(STARTS), SHAPES[shape][1]))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def three_points() -> tuple[np.ndarray, np.ndarray]:
    """Return the three inputs and their labels."""
    inputs = np.array([[math.cos(a), math.sin(a)] for a in ANGLES])
    return inputs, np.ones(len(ANGLES))
