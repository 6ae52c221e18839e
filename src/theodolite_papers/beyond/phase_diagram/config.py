"""Settings of the phase diagram: networks, initial scales and learning rates."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import Cell, ConfigError, ShortcutBlueprint
from theodolite.studies import StudyConfig
from theodolite_papers.li2016demystifying.shared.whitened import whitened

STUCK, TRAINS, DIVERGES = 0, 1, 2
NAMES = {STUCK: "stays", TRAINS: "trains", DIVERGES: "diverges"}
FAMILIES = ("linear", "relu")
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"shortcut": 2, "skip": False},
    "one_shortcut": {"shortcut": 1},
    "two_shortcut": {"shortcut": 2},
    "three_shortcut": {"shortcut": 3},
}
# A run has trained when its excess loss has fallen to a tenth of the first.
LEFT = 0.1


def phase_of(end: float, *, start: float, best: float) -> int:
    """Return the phase of a run from its first, last and least possible loss.

    Example:
        >>> NAMES[phase_of(0.4, start=5.0, best=0.3)]
        'trains'
        >>> NAMES[phase_of(float("nan"), start=5.0, best=0.3)]
        'diverges'
    """
    if not math.isfinite(end) or end > start * (1 + 1e-9):
        return DIVERGES
    return TRAINS if end <= best + LEFT * (start - best) else STUCK


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Networks, initial scales and learning rates of the diagram."""

    dataset: str = "mnist5k"  # named dataset, whitened
    width: int = 10  # principal components kept
    # Samples are thinned evenly to about this number.
    samples: int = 250
    depths: tuple[int, ...] = (6, 12)  # weight matrices, multiples of 6
    # Factors on Xavier weights at the start; 1 is Xavier.
    scales: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0)
    low: int = -3  # smallest rate, as a power of ten
    high: int = 1  # largest rate
    per_decade: int = 3  # rates per decade
    steps: int = 300  # updates of every run
    # ``linear`` and ``relu``, the activation between matrices of a unit.
    families: tuple[str, ...] = ("linear", "relu")

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(depth % 6 for depth in self.depths):
            raise ConfigError(
                f"depths {self.depths}: units of 1, 2 and 3 matrices want multiples "
                "of 6"
            )
        if any(name not in FAMILIES for name in self.families):
            raise ConfigError(f"families {self.families}: known are {FAMILIES}")

    @property
    def rates(self) -> list[float]:
        """Learning rates, the same decades and steps for every network."""
        count = (self.high - self.low) * self.per_decade + 1
        powers = self.low + np.arange(count) / self.per_decade
        return [float(f"{10.0**power:.6g}") for power in powers]


PRESETS = {
    "smoke": Config(
        n_seeds=3,
        dataset="digits",
        samples=100,
        depths=(6,),
        scales=(0.01, 1.0),
        per_decade=1,
        steps=60,
    ),
    "quick": Config(n_seeds=3),
    "paper": Config(
        n_seeds=10,
        samples=5000,
        depths=(6, 12, 24, 48),
        scales=(0.01, 0.03, 0.1, 0.3, 0.6, 1.0),
        per_decade=5,
        steps=1000,
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network: family, kind, depth, initial scale and trial."""
    return [
        {"family": family, "kind": kind, "depth": depth, "scale": scale, "trial": seed}
        for depth in sorted(config.depths, reverse=True)
        for family in config.families
        for kind in KINDS
        for scale in config.scales
        for seed in config.seeds
    ]


def plan_of(config: Config, cell: Cell) -> ShortcutBlueprint:
    """Return the network of a cell."""
    return ShortcutBlueprint(
        width=config.width,
        depth=cell["depth"],
        mid="identity" if cell["family"] == "linear" else "relu",
        init="small",
        init_scale=cell["scale"],
        **KINDS[cell["kind"]],
    )


def data_of(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Return whitened samples, thinned evenly after whitening, so only nearly white."""
    x, y = whitened(config.dataset, config.width)
    stride = max(len(x) // config.samples, 1)
    return x[::stride], y[::stride]
