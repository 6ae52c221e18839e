"""Settings that the studies of trained layerwise networks share, without torch."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, LayerwiseBlueprint, even_stages
from theodolite.studies import StudyConfig

SHORT, LONG = "short", "long"
# What the paper does not give: the size of the readout at the start, as a factor on
# weights of variance 1/fan-in, and the learning rate. At 1 networks start far above the
# loss of a guess, at 0.02 near it.
READOUTS = (1.0, 0.02)
RATES = (0.01, 0.05)


@dataclass(frozen=True, kw_only=True)
class TrainedConfig(StudyConfig):
    """How long and how networks are trained: all four trainings, and one longer."""

    readouts: tuple[float, ...] = READOUTS  # factors on the readout at the start
    rates: tuple[float, ...] = RATES  # learning rates of plain SGD
    updates: int = 1000  # updates at every readout and rate
    long_updates: int = 0  # updates at the first readout and rate; 0 for no such run
    batch_size: int = 128  # samples per update

    def __post_init__(self) -> None:
        super().__post_init__()
        lengths = [n for n in (self.updates, self.long_updates) if n]
        if not lengths or min(lengths) < 16:
            raise ConfigError(
                f"{self.updates} and {self.long_updates} updates: pass at least 16, of "
                "which every quarter of the first quarter is read, or 0 for none"
            )

    @property
    def trainings(self) -> list[dict[str, Any]]:
        """The labels of all trainings."""
        four = [
            {"horizon": SHORT, "readout": readout, "rate": rate}
            for readout in self.readouts
            for rate in self.rates
            if self.updates
        ]
        first = {"readout": self.readouts[0], "rate": self.rates[0]}
        return four + ([{"horizon": LONG, **first}] if self.long_updates else [])

    def reading_steps(self, horizon: str) -> tuple[int, ...]:
        """Updates after which a network of a horizon is read, the start first."""
        return stages(self.updates if horizon == SHORT else self.long_updates)


def stages(last: int) -> tuple[int, ...]:
    """Return early steps, and steps spread evenly over training and its first quarter.

    Example:
        >>> stages(1600)
        (0, 1, 10, 100, 200, 300, 400, 800, 1200, 1600)
    """
    even = {*even_stages(last), *even_stages(last // 4)}
    return tuple(sorted(even | {step for step in (1, 10) if step < last // 16}))


@dataclass(frozen=True, kw_only=True)
class LayerwiseConfig(TrainedConfig):
    """The network and task of figures 1(d) and 1(e)."""

    classes: int = 50  # Gaussian classes
    inputs: int = 50  # their dimension
    separation: float = 8.0  # norm of their means; every direction has unit variance
    samples: int = 5000  # training samples
    width: int = 50  # units per layer
    depth: int = 10  # ReLU layers

    def plan(self, norm: str, init_scale: float = 1.0) -> LayerwiseBlueprint:
        """Return the blueprint of a network."""
        return LayerwiseBlueprint(
            inputs=self.inputs,
            width=self.width,
            depth=self.depth,
            classes=self.classes,
            norm=norm,  # type: ignore[arg-type]
            init_scale=init_scale,
        )


def spaced(steps: int, readings: int) -> tuple[int, ...]:
    """Return 0 and steps whose logarithms are evenly spaced up to the last.

    Example:
        >>> spaced(1000, 4)
        (0, 1, 10, 100, 1000)
    """
    chosen = np.round(np.geomspace(1, steps, readings)).astype(int)
    return (0, *dict.fromkeys(int(step) for step in chosen))
