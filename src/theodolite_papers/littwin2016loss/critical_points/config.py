"""Spin glasses whose critical points are counted, and settings of closed forms."""

import math
from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

# Depth of the residual networks whose mixtures are counted.
DEPTH = 4
# Energies up to this many times the dimension count for definition 4.
LEVEL = -0.25


def ladder(beta: float) -> dict[int, float]:
    """Return squared weights of Eq 16 from length 2 up, divided by their sum."""
    squares = {
        r: (math.comb(DEPTH - 1, r - 1) * beta**r) ** 2 for r in range(2, DEPTH + 1)
    }
    total = math.fsum(squares.values())
    return {r: square / total for r, square in squares.items()}


MIXTURES: dict[str, dict[int, float]] = {
    "three": {3: 1.0},
    "two-three": {2: 0.5, 3: 0.5},
    "two-four": {2: 0.25, 4: 0.75},
    "four": {4: 1.0},
    "beta-0.5": ladder(0.5),
    "beta-1": ladder(1.0),
    "beta-4": ladder(4.0),
}
# Residual networks of one depth, from shallow to deep, and the plain network.
LADDER = ("beta-0.5", "beta-1", "beta-4", "four")


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Glasses and closed forms."""

    # Names of mixtures counted, by dimension.
    glasses: tuple[tuple[int, tuple[str, ...]], ...]
    # Greatest orders p of figure 1(f) and theorem 5.
    depths: tuple[int, ...] = (3, 10, 100)
    # Scales of figure 1(f), rising.
    betas: tuple[float, ...] = tuple(round(10 ** (i / 10 - 2), 5) for i in range(31))
    n_mixtures: int = 300  # random mixtures tried against theorem 5, a depth
    # Dimensions of the approach to Eq 31, each twice the last but one.
    limits: tuple[int, ...] = (60, 80, 120, 160, 240, 320)
    # Depths of the gap between plain and residual networks.
    far_depths: tuple[int, ...] = (100, 1000, 10_000, 100_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        strange = {name for _, names in self.glasses for name in names} - set(MIXTURES)
        if strange or not all(2 <= width <= 5 for width, _ in self.glasses):
            raise ConfigError(
                f"glasses {self.glasses}: pass mixtures out of {', '.join(MIXTURES)}, "
                "in dimensions from 2 to 5, where all critical points can be found"
            )
        steps = zip(self.limits, self.limits[2:], strict=False)
        rising = self.limits[:2] == tuple(sorted(set(self.limits[:2])))
        if len(self.limits) < 6 or not rising or any(b != 2 * a for a, b in steps):
            raise ConfigError(
                f"limits {self.limits}: pass six dimensions or more, each twice the "
                "last but one"
            )


_COUNTED = ("three", "two-three", "two-four")
PRESETS = {
    "smoke": Config(
        n_seeds=16,
        glasses=(
            (2, ("three", "two-three")),
            (3, ("three", "two-three", *LADDER[::3])),
            (5, ("three",)),
        ),
        n_mixtures=50,
        depths=(3, 10),
    ),
    "quick": Config(
        n_seeds=40,
        glasses=(
            (2, _COUNTED),
            (3, (*_COUNTED[:2], *LADDER[::3])),
            (4, _COUNTED[:2]),
            (5, _COUNTED[:1]),
        ),
    ),
    "paper": Config(
        n_seeds=200,
        glasses=(
            (2, _COUNTED),
            (3, (*_COUNTED, *LADDER)),
            (4, _COUNTED),
            (5, _COUNTED),
        ),
        limits=(60, 80, 120, 160, 240, 320, 480, 640),
        n_mixtures=2000,
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per sampled glass."""
    return [
        {"width": width, "mixture": name, "trial": trial}
        for width, names in sorted(config.glasses, reverse=True)
        for name in names
        for trial in config.seeds
    ]
