"""Depths, scales and bands at which weights of path lengths are computed."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from theodolite.core import ConfigError, PathBlueprint
from theodolite.studies import StudyConfig

# Figure 1(a–c) has 1/10, 1/2 and 2; at 1 the formulas of the proofs have no meaning.
BETAS = {0.1: Fraction(1, 10), 0.5: Fraction(1, 2), 1.0: Fraction(1), 2.0: Fraction(2)}
# Bands around β/(1+β), as shares of the depth, whole lengths at every depth used.
BANDS = {
    0.1: (Fraction(1, 20), Fraction(1, 5)),
    0.5: (Fraction(1, 5), Fraction(1, 2)),
    1.0: (Fraction(2, 5), Fraction(3, 5)),
    2.0: (Fraction(1, 2), Fraction(4, 5)),
}
FIGURE_DEPTH = 100
FIGURE_BETAS = (0.1, 0.5, 2.0)
# Probabilities that a gate is open, at the paper's initialisation.
CHANCES = (0.1, 0.25, 0.5, 0.75, 0.9)
CHANCE = 0.6
NETWORK: dict[str, Any] = {
    "inputs": 6,
    "width": 8,
    "depth": 5,
    "unique": 4,
    "scale": 0.35,
}
COINS: dict[str, Any] = {"inputs": 2, "width": 2, "depth": 3}
WIDTHS = (4, 16, 64)
SETTINGS = ("paper", "fixed", "distinct")


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths of the exact weights, and of those by closed form."""

    # Depths for whole numbers, multiples of 20.
    depths: tuple[int, ...] = (20, 40, 100, 200, 400)
    # Depths at which sums of squares fit into a float with digits to spare, and at
    # which every length is checked.
    small_depths: tuple[int, ...] = (2, 3, 9, 10)
    # Depths for the log domain, multiples of 20.
    deep: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = [d for d in (*self.depths, *self.deep) if d < 20 or d % 20]
        if wrong or len(self.deep) < 3 or FIGURE_DEPTH not in self.depths:
            raise ConfigError(
                f"depths {self.depths} and {self.deep}: pass multiples of 20, of the "
                f"first also {FIGURE_DEPTH} and of the second at least three"
            )
        if not self.small_depths or not 2 <= min(self.small_depths):
            raise ConfigError(f"small_depths {self.small_depths}: pass some from 2 up")
        if max(self.small_depths) > 10:
            raise ConfigError(f"small_depths {self.small_depths}: pass some up to 10")


PRESETS = {
    "smoke": Config(n_seeds=2, depths=(20, 100), deep=(100, 1_000, 10_000)),
    "quick": Config(n_seeds=5),
    "paper": Config(
        n_seeds=20,
        depths=(20, 40, 100, 200, 400, 1_000, 2_000),
        small_depths=(2, 3, 4, 5, 6, 7, 8, 9, 10),
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per depth, small depth and network."""
    parts = {"exact": config.depths, "small": config.small_depths}
    computed = [
        {"part": part, "depth": depth, "trial": 0}
        for part, depths in parts.items()
        for depth in depths
    ]
    return computed + [
        {"part": "network", "depth": NETWORK["depth"], "trial": seed}
        for seed in config.seeds
    ]


def network() -> PathBlueprint:
    """Return the network whose output is split into its terms."""
    return PathBlueprint(**NETWORK)


def wide(setting: str, width: int) -> PathBlueprint:
    r"""Return a network of some width, with $C$ and $\Lambda$ as a setting says."""
    base = PathBlueprint(inputs=4, width=width, depth=3)
    return {
        "paper": base.with_(unique=width),
        "fixed": base.with_(unique=4, scale=0.25),
        "distinct": base,
    }[setting]
