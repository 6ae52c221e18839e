"""Random residual networks of several widths and depths, at two scales of weights."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, PathBlueprint, stream
from theodolite.studies import StudyConfig

# Second moment of a weight times the width: the paper's start, and that of He; and the
# paper's start with n different weights, which every layer shares (A2 and A3).
SCALES = {"unit": 1.0, "he": 2.0, "shared": 1.0}
# Layers of the network whose paths are listed one by one.
FEW = 5
# Share of open gates at normal inputs and weights without bias.
RHO = 0.5


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Sizes of the networks."""

    width: int = 64  # units per layer where depths differ
    depth: int = 20  # layers where widths differ
    widths: tuple[int, ...] = (32, 64, 128)  # all widths
    depths: tuple[int, ...] = (10, 20, 30)  # all depths, at least three
    samples: int = 32  # inputs per network

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.depths) < 3 or len(self.widths) < 3 or min(self.depths) < 3:
            raise ConfigError(
                f"depths {self.depths} and widths {self.widths}: trends want three of "
                "each, and paths of several lengths want depths from 3 up"
            )
        if self.depth not in self.depths or self.width not in self.widths:
            raise ConfigError(
                f"depth {self.depth} and width {self.width} are not among those to "
                "vary: take one of each"
            )
        if self.samples < 2:
            raise ConfigError(f"samples is {self.samples}: errors want two or more")


PRESETS = {
    "smoke": Config(
        n_seeds=3, width=16, depth=6, widths=(8, 16, 32), depths=(3, 6, 12), samples=8
    ),
    "quick": Config(n_seeds=16, samples=32),
    "paper": Config(
        n_seeds=20,
        depth=30,
        widths=(32, 64, 128, 256),
        depths=(10, 20, 30, 60),
        samples=128,
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network, the deepest first."""
    sizes = {(config.width, depth) for depth in config.depths}
    sizes |= {(width, config.depth) for width in config.widths}
    networks: list[dict[str, Any]] = [
        {"scale": scale, "width": width, "depth": depth, "trial": seed, "told": "sums"}
        for width, depth in sorted(sizes, key=lambda size: -size[0] * size[1])
        for scale in SCALES
        if scale != "shared" or width == config.width
        for seed in config.seeds
    ]
    single = {"width": config.width, "depth": FEW, "trial": config.seeds[0]}
    return [*networks, {"scale": "unit", **single, "told": "paths"}]


def blueprint(scale: str, width: int, depth: int) -> PathBlueprint:
    """Return the blueprint of a cell."""
    rms = math.sqrt(SCALES[scale] / width)
    unique = width if scale == "shared" else None
    return PathBlueprint(
        inputs=width, width=width, depth=depth, scale=rms, unique=unique
    )


def inputs(config: Config, width: int, trial: int) -> np.ndarray:
    """Return normal inputs."""
    return stream(trial, "ensemble", width).normal(size=(config.samples, width))
