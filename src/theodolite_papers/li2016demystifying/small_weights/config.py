"""Sets of points on which theorem 1 is tested, and their numbers of units."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Sets of points, and their numbers of units."""

    # ``basis``, ``detour``, or samples and width of random points.
    cases: tuple[str, ...] = ("basis", "detour", "6,4", "12,3", "12,10")
    steps: tuple[int, ...] = (10, 20, 40, 80)  # units a sample
    # Steps $d$ at which the count of Eq 19 is tested.
    longest: tuple[float, ...] = (1.0, 0.5, 0.2)
    # Up to this many units a module is built. Longer chains reuse one unit and replace
    # its weights, which computes the same.
    whole: int = 120
    # Smallest distances at which rounding is measured.
    distances: tuple[float, ...] = (0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05)
    length: float = 1.5  # length of the path on which it is
    trap_steps: int = 200  # units a sample there
    dataset: str = "mnist5k"  # digits whose labels and norms are measured
    samples: int = 12  # how many of them are interpolated

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
