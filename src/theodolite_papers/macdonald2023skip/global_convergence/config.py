"""Data, starts and steps of descent on normalised residual networks."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from theodolite.core import ConfigError, stream
from theodolite.studies import StudyConfig

Gate = Literal["tanh", "ramp", "bump"]
Cost = Literal["logistic", "square"]
PARTS = ("arithmetic", "kernels", "one_layer", "stalls", "bounded", "generic")
BRANCH_NORM = 0.9
# Starts of one layer: sizes of normal weights; "turned" lies at the wrong corner.
SIZES = {"tiny": 0.01, "unit": 1.0, "huge": 6.0}
TURNED = 3.0
# Starts of two layers; branches of "still" are zero and never move.
FAR_STARTS = ("unit", "tiny", "huge", "still")
# Gates whose branches do not move: tanh at zero, the others on an open set of starts.
STALLS: tuple[tuple[Gate, str], ...] = (
    ("tanh", "zero"),
    ("ramp", "open"),
    ("bump", "open"),
)
COSTS: tuple[Cost, ...] = ("logistic", "square")
# Steps and forces of the worst growth of a weight.
GROWTH_RATES, FORCE = (0.05, 0.5), 1.0
# Spectra and steps of quadratic losses; the last is one number.
QUADRATICS = (((1.0, 4.0), 0.45), ((0.5, 0.25), 1.0), ((1.0, 2.0, 10.0), 0.15))
LINE = (2.0, 0.3)
# Scales of weights at which tangent kernels are read.
KERNEL_SCALES = (0.1, 1.0, 5.0)
RIVALS = ("no skip", "long branch", "dependent data")
LONG_BRANCH = 1.2
# Target and step of the fourth power as a cost: convex, smooth, not PL.
QUARTIC_TARGET, QUARTIC_RATE = 0.3, 0.2
# Limits nearer to the best loss count as equal to it.
REACHED = 1e-4
# Distance of starts from a network that fits, where the proof keeps weights bounded.
NEARBY = 1e-4


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Descent of networks from many starts."""

    samples: int = 3  # samples per dataset, one per class; at most as many as features
    features: int = 4  # features of a sample
    epsilon: float = 1.0  # of all normalisations
    # Steps, in units of the certified one over beta.
    multiples: tuple[float, ...] = (1.0, 8.0, 64.0)
    copies: int = 16  # Gaussian starts per dataset, of two layers
    steps: int = 2000  # plain steps of two layers
    carried: int = 1000  # growing steps after them
    settled: int = 1000  # steps in coordinates that end at infinity
    long: int = 12_000  # plain steps of one layer
    stalled: int = 3000  # plain steps of networks that stall
    layers: tuple[int, ...] = (2, 3)  # layers of networks that stall
    flows: int = 4  # datasets on which one layer is compared with its flow
    gaussians: int = 100  # normal starts of a network of one unit

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.samples <= self.features:
            raise ConfigError(
                f"{self.samples} samples of {self.features} features: theorem 5.1 "
                "asks for linearly independent data, pass from 2 to as many samples "
                "as features"
            )
        if not self.epsilon > 0:
            raise ConfigError(
                f"epsilon is {self.epsilon}: normalised weights are smooth for "
                "positive ones alone, pass one such as 1"
            )
        if self.multiples[:1] != (1.0,) or list(self.multiples) != sorted(
            set(self.multiples)
        ):
            raise ConfigError(
                f"multiples are {self.multiples}: pass some that rise from 1.0, the "
                "certified step"
            )
        fewest = min(self.long, self.stalled, self.steps)
        if fewest < 100:
            raise ConfigError(
                f"{fewest} steps of descent tell nothing: pass at least 100 for long, "
                "stalled and steps"
            )

    @property
    def marks(self) -> tuple[int, ...]:
        """Steps at which one layer is read."""
        return _ladder(self.long)

    @property
    def stall_marks(self) -> tuple[int, ...]:
        """Steps at which networks that stall are read."""
        return _ladder(self.stalled)

    @property
    def near_marks(self) -> tuple[int, ...]:
        """Steps at which two layers are read."""
        return (0, *_ladder(self.steps))


def _ladder(last: int) -> tuple[int, ...]:
    rungs = [a * 10**k for k in range(1, 9) for a in (1, 3)]
    return (*(rung for rung in rungs if rung < last), last)


PRESETS = {
    "smoke": Config(
        n_seeds=4, copies=6, steps=300, carried=200, settled=300, long=2000,
        stalled=500, layers=(2,), flows=1, gaussians=24
    ),
    "quick": Config(n_seeds=12),
    "paper": Config(
        n_seeds=48, copies=48, steps=20_000, carried=4000, settled=4000, long=200_000,
        stalled=200_000, flows=12, gaussians=1000
    ),
}  # fmt: skip


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per group of numbers."""
    del config
    return [{"part": part} for part in PARTS]


def inputs(config: Config, trial: int) -> np.ndarray:
    """Return Gaussian samples, one per row, each of its own class."""
    rng = stream(config.seed, "data", trial)
    return rng.normal(size=(config.samples, config.features))


def one_layer_start(
    config: Config, trial: int, start: str, corner: np.ndarray
) -> np.ndarray:
    """Return first-layer weights; ``corner`` is where the infimum lies."""
    if start == "turned":
        return -TURNED * np.where(corner < 0, -1.0, 1.0)
    rng = stream(config.seed, "one layer", start, trial)
    return SIZES[start] * rng.normal(size=(config.samples, config.features))


def shapes(config: Config) -> tuple[tuple[int, int], ...]:
    """Return the shapes of the weights of two layers."""
    k = config.samples
    return (k, config.features), (k, k), (k, k)


def two_layer_start(
    config: Config, trial: int, start: str, copy: int
) -> list[np.ndarray]:
    """Return the weights of a start of two layers."""
    rng = stream(config.seed, "two layers", start, trial, copy)
    size = SIZES.get(start, 1.0)
    weights = [size * rng.normal(size=shape) for shape in shapes(config)]
    return [weights[0], *(0 * w for w in weights[1:])] if start == "still" else weights


def copies_of(config: Config, start: str) -> int:
    """Return how many starts of a kind are drawn per dataset."""
    return config.copies if start == "unit" else max(1, config.copies // 8)


def kernel_weights(config: Config, trial: int, scale: float) -> list[np.ndarray]:
    """Return weights at which the tangent kernel of two layers is read."""
    rng = stream(config.seed, "kernel", trial, str(scale))
    return [scale * rng.normal(size=shape) for shape in shapes(config)]
