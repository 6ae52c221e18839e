"""Settings: maps that are added to the projection, their place, and the images."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

SCALES = (0.0, 0.5, 1.0, 1.5, 2.0)
# Interventions on the second block's skip: the scaled average, isometries of other
# directions, and the same average beside the branch's first convolution.
VARIANTS: dict[str, dict[str, Any]] = {
    **{f"average × {scale:g}": {"added": scale} for scale in SCALES},
    "details": {"added": 1.0, "isometry": "haar"},
    "random": {"added": 1.0, "isometry": "random"},
    "branch": {"added": 1.0, "place": "branch"},
}
NOTHING, WHOLE = "average × 0", "average × 1"
# Architectures by dataset: the paper's sizes for images of 28 by 28 pixels, and for
# those of 8 by 8 smaller kernels and a second block that halves the image.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "mnist": {},
    "mnist5k": {},
    "digits": {"side": 8, "stem_kernel": 3, "stem_pool": 1, "kernel": 3, "stride": 2},
}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Settings of the interventions."""

    # Named datasets, each with its own architecture.
    datasets: tuple[str, ...] = ("mnist5k", "digits")
    samples: int = 32  # images per trial
    rate: float = 0.1  # learning rate
    steps: int = 30  # steps of gradient descent
    block_samples: int = 4  # samples for Jacobians of the two blocks alone

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self.datasets if name not in ARCHITECTURES]
        if unknown or not self.datasets:
            raise ConfigError(
                f"datasets are {self.datasets}: architectures are known for "
                f"{', '.join(ARCHITECTURES)}"
            )
        if self.steps < 10 or not 1 <= self.block_samples <= self.samples:
            raise ConfigError(
                f"steps is {self.steps} and block_samples {self.block_samples} of "
                f"{self.samples}: pass at least 10 steps and at most all samples"
            )


PRESETS = {
    "smoke": Config(
        n_seeds=2, datasets=("digits",), samples=6, steps=10, block_samples=1
    ),
    "quick": Config(n_seeds=2, samples=16, committed=True),
    # New trials; the claims were written after looking at others.
    "paper": Config(n_seeds=12, seed=200),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network."""
    return [
        {"dataset": dataset, "variant": variant, "trial": trial}
        for dataset in config.datasets
        for trial in config.seeds
        for variant in VARIANTS
    ]
