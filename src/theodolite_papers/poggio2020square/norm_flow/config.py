"""Networks, steps and cases of the flows of norms."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import stream
from theodolite.studies import StudyConfig

from ..shared.drawn_networks import Drawn
from ..shared.rows import check_halving

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
    "neither": ((0.5, 0.5, -0.4, -0.4), 0.0),
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
    """Flows of the norm alone, of one unit and of random ReLU networks."""

    # Steps of gradient descent, each half of the one before.
    rates: tuple[float, ...] = (0.02, 0.01, 0.005)
    layers: tuple[int, ...] = (2, 3, 4, 8)  # numbers of layers of Eq 28
    starts: tuple[float, ...] = (0.1, 0.01, 1e-3)  # norms that it starts from
    # Inputs, hidden units and output of the networks that are trained.
    widths: tuple[int, ...] = (4, 8, 1)
    # The same of those that are differentiated only.
    deep_widths: tuple[int, ...] = (4, 8, 6, 1)
    samples: int = 6  # inputs of each
    decay: float = 0.05  # weight decay of the networks, on the sum of squares
    horizon: float = 40.0  # when flows of units are compared
    network_horizon: float = 0.2  # when flows of networks are compared
    end: float = 60.0  # when descent of networks ends

    def __post_init__(self) -> None:
        super().__post_init__()
        check_halving(self.rates)


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
