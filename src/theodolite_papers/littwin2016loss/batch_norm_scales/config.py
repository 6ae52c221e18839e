"""Networks and training of figure 1(d), and the recursion of section 4.1."""

from dataclasses import dataclass
from typing import Any

from ..shared.layerwise_config import LayerwiseConfig

START = "start"
NORMS = ("scalar", "batch")
# Labels of a run.
RUN = ("norm", "horizon", "readout", "rate", "trial")


@dataclass(frozen=True, kw_only=True)
class Config(LayerwiseConfig):
    """See ``LayerwiseConfig``."""

    # Units, inputs and samples of the networks whose sizes are followed through the
    # layers before training.
    wide: int = 512
    layers: int = 8  # their layers
    copies: int = 6  # networks that a trial averages over


PRESETS = {
    "smoke": Config(
        n_seeds=3,
        samples=1000,
        width=20,
        depth=5,
        updates=32,
        long_updates=48,
        wide=128,
        layers=4,
        copies=2,
    ),
    "quick": Config(n_seeds=3, updates=200, committed=True),
    "paper": Config(n_seeds=10, long_updates=10_000, wide=1024),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network; some are only read at their start."""
    trained = [
        {"norm": norm, **training, "trial": trial}
        for trial in config.seeds
        for norm in NORMS
        for training in config.trainings
    ]
    return trained + [{"norm": START, "trial": trial} for trial in config.seeds]
