"""Settings that the studies of trained layerwise networks share, without torch."""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, LayerwiseBlueprint
from theodolite.studies import StudyConfig


@dataclass(frozen=True, kw_only=True)
class LayerwiseConfig(StudyConfig):
    """The network and task of figures 1(d) and 1(e).

    Attributes:
        classes: Gaussians to tell apart.
        inputs: Their dimension.
        separation: Norm of their means; every direction has unit variance.
        samples: Training samples.
        width: Units of a layer.
        depth: ReLU layers.
        rate: Learning rate of plain SGD.
        steps: Updates.
        batch_size: Samples an update.
        readings: Readings after the start, evenly spaced in the logarithm.
    """

    classes: int = 50
    inputs: int = 50
    separation: float = 8.0
    samples: int = 5000
    width: int = 50
    depth: int = 10
    rate: float = 0.01
    steps: int = 1000
    batch_size: int = 128
    readings: int = 6

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
