"""Mixtures, dimensions and numbers of sampled energies."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

MIXTURES: dict[str, dict[int, float]] = {
    "three": {3: 1.0},
    "two-three": {2: 0.5, 3: 0.5},
    "two-four": {2: 0.25, 4: 0.75},
}
# Overlap of the pairs of points whose covariance is read.
OVERLAP = 0.5
# Distance from the centre, over the sphere's radius, of points that are off it.
OFF = 1.2


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Dimensions and sample sizes."""

    widths: tuple[int, ...] = (3, 5)  # dimensions
    draws: int = 250  # energies sampled per trial
    points: int = 24  # points at which each is evaluated

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.widths, default=0) < 3 or max(self.widths) > 6:
            raise ConfigError(
                f"widths {self.widths}: two tangent directions need 3 or more, and "
                "full tensors are made up to 6"
            )
        if self.draws < 2 or self.points < 1:
            raise ConfigError(
                f"{self.draws} draws at {self.points} points: pass 2 or more, and 1 or "
                "more"
            )


PRESETS = {
    "smoke": Config(n_seeds=5, widths=(3,), draws=120),
    "quick": Config(n_seeds=8, draws=150),
    "paper": Config(n_seeds=20, widths=(3, 4, 5, 6), draws=1000),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per dimension, mixture and trial."""
    return [
        {"width": width, "mixture": mixture, "trial": trial}
        for width in config.widths
        for mixture in MIXTURES
        for trial in config.seeds
    ]
