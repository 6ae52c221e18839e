"""Small networks whose paths can all be listed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, PathBlueprint, stream
from theodolite.studies import StudyConfig

# Width of all networks; of their different weights 2 divide it, 3 do not.
WIDTH = 4
NETWORKS: dict[str, dict[str, Any]] = {
    "plain": {"inputs": 3, "skip": False},
    "residual": {"inputs": 3},
    "cyclic": {"inputs": 3, "unique": 2},
    "by_input": {"inputs": 2, "unique": 2, "sharing": "by_input"},
    "uneven": {"inputs": 2, "unique": 3},
}
# Every state of the gates of this one is visited, so it is smaller.
COINS: dict[str, Any] = {"inputs": 2, "width": 2, "depth": 3}
GATE = 0.6


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths and inputs of the networks."""

    depths: tuple[int, ...] = (2, 3, 5)  # layers, from 2 up
    samples: int = 8  # inputs per network; half of them are the others negated

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.depths or not 2 <= min(self.depths) <= max(self.depths) <= 8:
            raise ConfigError(
                f"depths {self.depths}: paths have two lengths from depth 2 up, and "
                "beyond depth 8 there are too many to list"
            )
        if self.samples < 2 or self.samples % 2:
            raise ConfigError(f"samples is {self.samples}: pass an even number")


PRESETS = {
    "smoke": Config(n_seeds=2, depths=(2, 5)),
    "quick": Config(n_seeds=5, depths=(2, 3, 5)),
    "paper": Config(n_seeds=20, depths=(2, 3, 4, 5, 6), samples=32),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network, and one per network of coins."""
    networks = [
        {"network": network, "depth": depth, "trial": seed}
        for network in NETWORKS
        for depth in config.depths
        for seed in config.seeds
    ]
    return networks + [
        {"network": network, "depth": COINS["depth"], "trial": seed}
        for network in ("coins", "plain_coins")
        for seed in config.seeds
    ]


def blueprint(network: str, depth: int) -> PathBlueprint:
    """Return the blueprint of a cell."""
    if network in ("coins", "plain_coins"):
        return PathBlueprint(**COINS, skip=network == "coins")
    return PathBlueprint(width=WIDTH, depth=depth, **NETWORKS[network])


def inputs(config: Config, plan: PathBlueprint, trial: int) -> np.ndarray:
    """Return normal inputs and their negatives."""
    rng = stream(trial, "inputs", plan.inputs)
    half = rng.normal(size=(config.samples // 2, plan.inputs))
    return np.concatenate([half, -half])
