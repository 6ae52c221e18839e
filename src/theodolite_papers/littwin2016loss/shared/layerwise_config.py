"""Settings that the studies of trained layerwise networks share, without torch."""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, LayerwiseBlueprint
from theodolite.studies import StudyConfig


@dataclass(frozen=True, kw_only=True)
class LayerwiseConfig(StudyConfig):
    """The network and task of figures 1(d) and 1(e)."""

    classes: int = 50  # Gaussian classes
    inputs: int = 50  # their dimension
    separation: float = 8.0  # norm of their means; every direction has unit variance
    samples: int = 5000  # training samples
    width: int = 50  # units per layer
    depth: int = 10  # ReLU layers
    rate: float = 0.01  # learning rate of plain SGD
    steps: int = 1000  # updates
    batch_size: int = 128  # samples per update
    readings: int = 6  # readings after the start, evenly spaced in the logarithm

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 3 <= self.readings <= self.steps:
            raise ConfigError(
                f"{self.readings} readings of {self.steps} steps: pass at least 3 "
                "readings and as many steps"
            )

    @property
    def reading_steps(self) -> tuple[int, ...]:
        """Updates after which a network is read, the start first."""
        return spaced(self.steps, self.readings)

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
