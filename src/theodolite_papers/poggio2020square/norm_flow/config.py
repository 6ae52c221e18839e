"""Networks, steps and cases of the flows of norms."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, stream
from theodolite.studies import StudyConfig

from ..shared.drawn_networks import Drawn

# Outputs of a normalised network that are held, and their labels.
OUTPUTS, LABELS = (0.5, 0.3, -0.4, 0.2), (1.0, 1.0, -1.0, 1.0)
DECAY, TORCH_DECAY = 0.1, 0.01
# Times at which held outputs are compared, and layers at which Eq 28 is.
TIMES = (1.0, 5.0)
LAYERED = ((2, 1.0), (4, 2.0))
# Equilibria by products y f and decay: footnote 6 says that none is below one.
EQUILIBRIA = {
    "separable": ((0.5, 0.3, 0.4, 0.2), 0.0),
    "decay": ((1.0, 1.0, 1.0), 0.5),
    "average": ((1.0, 1.0, -0.9), 0.0),
}
# One ReLU unit under a fixed second layer: its angle, the angles of inputs, decay.
START, ANGLE = 0.01, 1.4
UNITS: dict[str, tuple[tuple[float, ...], float]] = {
    "one input with decay": ((0.0,), 0.01),
    "one input": ((0.0,), 0.0),
    "two inputs": ((0.0, 0.3), 0.0),
}
# Factors on the square of a layer's norm, and norms with multipliers of each sign.
SIDES, SCALES = (0.9, 1.1), (0.05, 1000.0)
# How outputs between 0 and 1 are spread: towards the ends, evenly, to the middle.
SPREADS = (0.05, 1.0, 20.0)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Flows of the norm alone, of one unit and of random ReLU networks.

    Attributes:
        rates: Steps of gradient descent, each half of the one before.
        layers: Numbers of layers of Eq 28.
        starts: Norms that it starts from.
        widths: Inputs, hidden units and output of the networks that are trained.
        deep_widths: The same of those that are differentiated only.
        samples: Inputs of each.
        decay: Weight decay of the networks, on the sum of squares.
        horizon: When flows of units are compared.
        network_horizon: When flows of networks are compared.
        end: When descent of networks ends.
    """

    rates: tuple[float, ...] = (0.02, 0.01, 0.005)
    layers: tuple[int, ...] = (2, 3, 4, 8)
    starts: tuple[float, ...] = (0.1, 0.01, 1e-3)
    widths: tuple[int, ...] = (4, 8, 1)
    deep_widths: tuple[int, ...] = (4, 8, 6, 1)
    samples: int = 6
    decay: float = 0.05
    horizon: float = 40.0
    network_horizon: float = 0.2
    end: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        halves = all(
            math.isclose(a, 2 * b)
            for a, b in zip(self.rates[:-1], self.rates[1:], strict=True)
        )
        if len(self.rates) < 2 or not halves or not self.rates[-1] > 0:
            raise ConfigError(
                f"rates {self.rates} do not halve: pass at least two, such as "
                "(0.02, 0.01)"
            )


PRESETS = {
    "smoke": Config(n_seeds=6, horizon=12.0, end=25.0),
    "quick": Config(n_seeds=20),
    "paper": Config(n_seeds=100, rates=(0.01, 0.005, 0.0025), end=200.0),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per group of numbers."""
    del config
    return [
        {"part": part}
        for part in ("identities", "held", "footnotes", "layered", "units", "networks")
    ]


def unit_data(case: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Return inputs, labels and decay of a unit."""
    angles, decay = UNITS[case]
    inputs = np.array([[math.cos(a), math.sin(a)] for a in angles])
    return inputs, np.ones(len(angles)), decay


def unit_weights() -> tuple[np.ndarray, np.ndarray]:
    """Return the unit's weights and the fixed second layer."""
    first = np.array([[math.cos(ANGLE), math.sin(ANGLE)]])
    return first, np.ones((1, 1))


def ray_network(config: Config, trial: int) -> Drawn:
    """Draw rank-one layers, each parallel to its gradient, for inputs on a ray."""
    rng = stream(config.seed, "ray", trial)
    units = [rng.normal(size=config.deep_widths[0])]
    units += [np.abs(rng.normal(size=width)) for width in config.deep_widths[1:-1]]
    units = [u / np.linalg.norm(u) for u in units] + [np.ones(1)]
    weights = tuple(
        np.outer(after, before) for before, after in itertools.pairwise(units)
    )
    lengths = rng.uniform(0.2, 1.0, size=config.samples)
    labels = np.where(np.arange(config.samples) % 3, 1.0, -1.0)
    probes = tuple(np.zeros_like(w) for w in weights)
    return Drawn(weights, np.outer(lengths, units[0]), labels, probes)


def shares(config: Config, trial: int) -> dict[float, np.ndarray]:
    """Draw products y f between 0 and 1 by how they are spread, one of them large."""
    rng = stream(config.seed, "shares", trial)
    drawn = {spread: rng.beta(spread, spread, size=4) for spread in SPREADS}
    for f in drawn.values():
        f[0] = max(f[0], rng.uniform(0.5, 1.0))
    return drawn
