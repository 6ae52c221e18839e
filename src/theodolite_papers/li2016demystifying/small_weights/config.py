"""Sets of points that theorem 1 is tried on, and how many units they get."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Sets of points, and how many units they get.

    Attributes:
        cases: ``basis``, ``detour``, or samples and width of random points.
        steps: Units per sample.
        longest: Steps $d$ at which the count of Eq 19 is tried.
        whole: Up to this many units a module is built; longer chains go through one
            unit with weights exchanged, which computes the same.
        distances: Least distances at which rounding is tried.
        length: Length of the path on which it is.
        trap_steps: Units per sample there.
        dataset: Digits whose labels and norms are looked at.
        samples: How many of them are interpolated.
    """

    cases: tuple[str, ...] = ("basis", "detour", "6,4", "12,3", "12,10")
    steps: tuple[int, ...] = (10, 20, 40, 80)
    longest: tuple[float, ...] = (1.0, 0.5, 0.2)
    whole: int = 120
    distances: tuple[float, ...] = (0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05)
    length: float = 1.5
    trap_steps: int = 200
    dataset: str = "mnist5k"
    samples: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.steps) < 3:
            raise ConfigError(f"steps {self.steps}: a slope wants at least three")


PRESETS = {
    "smoke": Config(
        n_seeds=1,
        cases=("basis", "detour", "6,4"),
        steps=(10, 20, 40),
        longest=(1.0, 0.3),
        distances=(0.6, 0.4, 0.3, 0.2, 0.05),
        trap_steps=100,
        dataset="digits",
    ),
    # Rounding differs among processors: two chains leave its growth undecided on some.
    "quick": Config(n_seeds=5),
    "paper": Config(
        n_seeds=5,
        steps=(10, 20, 40, 80, 160, 320, 640),
        longest=(1.0, 0.5, 0.2, 0.1, 0.05),
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per case and trial, and those of the smaller tasks."""
    walks = [
        {"task": "walk", "case": case, "trial": seed}
        for case in config.cases
        for seed in (config.seeds if "," in case else config.seeds[:1])
    ]
    others = [
        {"task": task, "case": "", "trial": seed}
        for task in ("lemma", "trap")
        for seed in config.seeds
    ]
    return [*walks, *others, {"task": "labels", "case": "", "trial": config.seed}]
