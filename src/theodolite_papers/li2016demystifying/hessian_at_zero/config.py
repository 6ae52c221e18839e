"""Random problems of theorem 2, and data on which it degenerates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import stream
from theodolite.studies import StudyConfig

from ..shared.problems import random_data

LENGTHS = (1, 2, 3, 4)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width, at several numbers of units."""

    width: int = 4
    samples: int = 24
    units: tuple[int, ...] = (1, 2, 4)


PRESETS = {
    "smoke": Config(n_seeds=2, units=(1, 2)),
    "quick": Config(n_seeds=5),
    "paper": Config(n_seeds=20, units=(1, 2, 4, 8)),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per shortcut length and dataset, and one for the picture."""
    all_cells = [
        {"data": "random", "n": n, "trial": seed}
        for n in LENGTHS
        for seed in config.seeds
    ]
    all_cells += [
        {"data": data, "n": 2, "trial": seed}
        for data in ("singular", "zero")
        for seed in config.seeds
    ]
    return [*all_cells, {"data": "picture", "n": 0, "trial": config.seed}]


def dataset(config: Config, data: str, trial: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return inputs and targets of a trial.

    On "singular" data $M = E[(x-y)x^T]$ has lost its least singular value, on "zero"
    data all of them: the part of $x - y$ that a linear map of $x$ explains is
    replaced by one with that $M$.
    """
    if data == "picture":  # small enough to show every entry
        x, y = stream(config.seed, "picture").normal(size=(2, 12, 2))
        return x, y
    x, y = random_data(trial, samples=config.samples, width=config.width)
    if data == "random":
        return x, y
    left, single, right = np.linalg.svd((x - y).T @ x / len(x))
    lost = single.copy()
    if data == "singular":
        lost[:-1] = 0
    change = (left * lost) @ right @ np.linalg.inv(x.T @ x / len(x))
    return x, y + x @ change.T
