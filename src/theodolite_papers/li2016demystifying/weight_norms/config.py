"""Depths, rates and data of figure 3."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

NETWORKS: dict[str, dict[str, Any]] = {"linear": {}, "relu": {"mid": "relu"}}
# Shallow networks are lost from the middle of these on, the deepest at the last ones,
# so that the best rate has others on both sides.
RATES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths, rates and data of figure 3.

    Attributes:
        dataset: Named dataset, whitened.
        width: Principal components kept.
        depths: Numbers of weight matrices, even; three depths or more.
        steps: Updates of full-batch gradient descent.
        rates: Learning rates; every network trains at each.
        relu_stride: ReLU networks train on every n-th sample; linear networks use
            all, at the same cost.
        per_decade: Measurements per decade of steps.
    """

    dataset: str = "mnist5k"
    width: int = 10
    depths: tuple[int, ...] = (4, 8, 16, 32)
    steps: int = 1000
    rates: tuple[float, ...] = RATES
    relu_stride: int = 10
    per_decade: int = 3

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
