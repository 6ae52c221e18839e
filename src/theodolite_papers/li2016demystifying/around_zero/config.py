"""Random problems around theorem 2."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.studies import StudyConfig

from ..shared.problems import random_data

# Lengths of shortcuts whose order of contact is measured.
ORDERS = (2, 3, 4, 5)
TASKS = ("contact", "bias", "fixed_bias", "relu")


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width, at several numbers of units."""

    width: int = 4  # width of all networks
    samples: int = 24  # samples per dataset
    # Units of the networks whose Hessians are measured.
    units: tuple[int, ...] = (1, 2, 4)
    # Scale of the small weights at which ReLU networks are measured.
    small: float = 1e-6
    # Distance from zero at which the loss of 2-shortcut networks is compared; $n - 1$
    # times as far for $n$-shortcut ones.
    step: float = 0.01


PRESETS = {
    "smoke": Config(n_seeds=3, units=(1, 2)),
    "quick": Config(n_seeds=5),
    "paper": Config(n_seeds=20, units=(1, 2, 4, 8)),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per task and dataset."""
    return [{"task": task, "trial": seed} for task in TASKS for seed in config.seeds]


def dataset(config: Config, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the random inputs and targets of a trial."""
    return random_data(trial, samples=config.samples, width=config.width)
