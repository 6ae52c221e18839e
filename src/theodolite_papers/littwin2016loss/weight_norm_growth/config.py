"""Networks and training of figure 1(e)."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError

from ..shared.layerwise_config import LayerwiseConfig

# Labels of a run.
RUN = ("init_scale", "horizon", "readout", "rate", "trial")


@dataclass(frozen=True, kw_only=True)
class Config(LayerwiseConfig):
    """See ``LayerwiseConfig``."""

    # Factors on starting weights of variance 1/fan-in, which is the paper's $C =
    # 1/\sqrt{n}$; without normalisation it sets the size of a network.
    init_scales: tuple[float, ...] = (0.5, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.init_scales or min(self.init_scales) <= 0:
            raise ConfigError(
                f"init_scales are {self.init_scales}: pass at least one, all positive"
            )


PRESETS = {
    "smoke": Config(
        n_seeds=3, samples=1000, width=20, depth=5, updates=32, long_updates=48
    ),
    "quick": Config(n_seeds=3, updates=200, committed=True),
    "paper": Config(n_seeds=10, long_updates=10_000),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network."""
    return [
        {"init_scale": scale, **training, "trial": trial}
        for trial in config.seeds
        for scale in config.init_scales
        for training in config.trainings
    ]
