"""Settings: networks with and without skips and norms, losses and rates."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError, even_stages
from theodolite.studies import StudyConfig

BOTH, SKIPS, NORMS, NEITHER = "skips and norms", "skips", "norms", "neither"
KINDS = (BOTH, SKIPS, NORMS, NEITHER)
# Losses with their rates; the first is that of the paper's remark on uniform bounds.
TASKS = {
    "square, rate 1": ("square", 1.0),
    "square, rate 0.3": ("square", 0.3),
    "cross-entropy, rate 1": ("cross_entropy", 1.0),
}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Settings of the networks and of their training."""

    steps: int = 200  # of gradient descent
    stages: int = 4  # even parts of the training, at whose ends bounds are computed
    width: int = 8
    samples: int = 6
    classes: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.classes <= self.samples <= self.width or self.steps < self.stages:
            raise ConfigError(
                f"classes is {self.classes}, samples {self.samples}, width "
                f"{self.width} and steps {self.steps}: pass classes up to samples "
                f"up to width, and at least {self.stages} steps"
            )

    @property
    def times(self) -> tuple[int, ...]:
        """Steps at which bounds are computed."""
        return even_stages(self.steps, self.stages)


PRESETS = {
    "smoke": Config(n_seeds=2, steps=20, stages=2),
    "quick": Config(n_seeds=8),
    "paper": Config(n_seeds=24, steps=1000),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network."""
    return [
        {"task": task, "trial": trial, "kind": kind}
        for task in TASKS
        for trial in config.seeds
        for kind in KINDS
    ]
