"""Networks whose signals are measured, at the start and after training."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError

from ..shared.cifar_config import SMALL, CifarConfig

# At the start: with shortcuts, without, and with shortcuts and batch normalisation.
KINDS = ("residual", "plain", "normalised")
WIDER: dict[str, Any] = {**SMALL, "width": 8}


@dataclass(frozen=True, kw_only=True)
class Config(CifarConfig):
    """Networks at the start, and those of :class:`CifarConfig` that are trained."""

    shortcuts: tuple[int, ...] = (2,)
    # Units of two layers of the networks at the start.
    units: tuple[int, ...] = (2, 4, 8, 16, 32)
    start_width: int = 16  # their channels
    start_seeds: int = 6  # networks per kind and number of units
    images: int = 64  # images that go through them

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(len(self.units), len(self.depths)) < 3:
            raise ConfigError(
                f"units {self.units} and depths {self.depths}: a trend wants three"
            )


PRESETS = {
    "smoke": Config(
        n_seeds=2,
        samples=128,
        depths=(14, 26, 38),
        stages=1,
        epochs=1,
        units=(2, 4, 8),
        start_seeds=3,
        **SMALL,
    ),
    "quick": Config(
        n_seeds=2,
        samples=640,
        depths=(14, 26, 38),
        stages=1,
        epochs=2,
        units=(2, 4, 8, 16),
        start_seeds=4,
        committed=True,
        **SMALL,
    ),
    # Section 4.1 names no networks: width and epochs are ours.
    "paper": Config(
        n_seeds=6, depths=(14, 26, 50), stages=1, epochs=15, start_seeds=20, **WIDER
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per trained network, deepest first, and per new network."""
    trained = [
        {"task": "trained", "shortcut": 2, "depth": depth, "trial": seed}
        for depth in sorted(config.depths, reverse=True)
        for seed in config.seeds
    ]
    return trained + [
        {"task": "start", "kind": kind, "units": units, "trial": config.seed + k}
        for kind in KINDS
        for units in config.units
        for k in range(config.start_seeds)
    ]
