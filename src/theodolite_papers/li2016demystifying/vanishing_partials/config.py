"""Random problems of lemmas 3 and 4, and the matrices of each derivative."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

LENGTHS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width."""

    width: int = 3  # width of all networks
    samples: int = 12  # samples per dataset
    units: int = 2  # units for lemma 3; all sets of their matrices are tried
    order: int = 4  # highest order of a derivative
    moved: int = 3  # units for lemma 4
    size: float = 0.3  # size of the two matrices that lemma 4 moves between units

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order < max(LENGTHS):
            raise ConfigError(
                f"order {self.order}: a derivative through a whole unit of "
                f"{max(LENGTHS)} matrices has at least that order"
            )


PRESETS = {
    "smoke": Config(n_seeds=2, order=3),
    "quick": Config(n_seeds=2),
    "paper": Config(n_seeds=10, order=5, moved=4),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per lemma, shortcut length and dataset."""
    return [
        {"task": task, "n": n, "trial": seed}
        for task in ("partials", "translation")
        for n in LENGTHS
        for seed in config.seeds
        if task == "partials" or n < 3
    ]


def patterns(layers: int, order: int) -> list[tuple[int, ...]]:
    """Return all sets of matrices, with repetition, of a derivative of some order."""
    return list(combinations_with_replacement(range(layers), order))


def complete(chosen: Sequence[int], n: int) -> int:
    """Return how many units have all their matrices among the chosen."""
    units = {layer // n for layer in chosen}
    return sum(set(range(r * n, (r + 1) * n)) <= set(chosen) for r in units)
