"""Depths, rates and data of figure 3."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

NETWORKS: dict[str, dict[str, Any]] = {"linear": {}, "relu": {"mid": "relu"}}
# Shallow networks diverge from the middle of these rates on, the deepest at the last
# ones, so that the best rate has others on both sides.
RATES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths, rates and data of figure 3."""

    dataset: str = "mnist5k"  # named dataset, whitened
    width: int = 10  # principal components kept
    # Weight matrices, even numbers, at least three.
    depths: tuple[int, ...] = (4, 8, 16, 32)
    steps: int = 1000  # updates of full-batch gradient descent
    rates: tuple[float, ...] = RATES  # learning rates; every network trains at each
    # ReLU networks use one sample in this many; linear networks cost the same on all.
    relu_stride: int = 10
    per_decade: int = 3  # steps measured as the step grows tenfold

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(d % 2 for d in self.depths) or len(self.depths) < 3:
            raise ConfigError(
                f"depths {self.depths}: an exponent wants at least three, and "
                "2-shortcut networks want even ones"
            )

    @property
    def looked_at(self) -> tuple[int, ...]:
        """Steps at which norms are measured, the first and the last among them."""
        powers = range(int(self.per_decade * np.log10(self.steps)) + 1)
        steps = {round(10 ** (k / self.per_decade)) for k in powers}
        return tuple(sorted({0, *steps, self.steps}))


PRESETS = {
    "smoke": Config(
        n_seeds=3,
        dataset="digits",
        depths=(4, 8, 16),
        steps=200,
        rates=(0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4),
        relu_stride=6,
        per_decade=1,
    ),
    "quick": Config(n_seeds=4, committed=True),
    "paper": Config(
        n_seeds=10,
        dataset="mnist",
        depths=(4, 8, 16, 32, 48, 64),
        relu_stride=1,
        per_decade=8,
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network and depth, the most expensive first."""
    return [
        {"network": name, "depth": depth}
        for name in reversed(NETWORKS)
        for depth in sorted(config.depths, reverse=True)
    ]
