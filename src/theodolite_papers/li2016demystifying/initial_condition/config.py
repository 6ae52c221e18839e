"""Depths and data of figure 4."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

# Plain networks start at Xavier or orthogonal weights; shortcut networks at a
# hundredth of Xavier weights, as in section 4.1.
KINDS: dict[str, dict[str, Any]] = {
    "xavier": {"shortcut": 1, "skip": False, "init": "xavier"},
    "orthogonal": {"shortcut": 1, "skip": False, "init": "orthogonal"},
    "one_shortcut": {"shortcut": 1, "init": "small"},
    "two_shortcut": {"shortcut": 2, "init": "small"},
}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths and data of figure 4."""

    dataset: str = "mnist5k"  # named dataset, whitened
    width: int = 10  # principal components kept
    # Weight matrices of the measured networks, even numbers.
    depths: tuple[int, ...] = (2, 4, 8, 16, 24)
    # Depths for the closed forms, which cost little.
    predicted_depths: tuple[int, ...] = (2, 4, 8, 16, 24, 32, 48, 64, 96)
    # Up to this depth Hessians are measured by double backward, on few samples with the
    # same second moments; beyond it they are computed from the moments, which is the
    # same matrix and takes less memory.
    measured_depth: int = 16
    # Up to this depth the first two networks are measured on all samples as well.
    samples_depth: int = 4
    n_conventions: int = 2000  # random orders and signs of components tried

    def __post_init__(self) -> None:
        super().__post_init__()
        odd = [d for d in (*self.depths, *self.predicted_depths) if d % 2]
        if odd or len(self.depths) < 3:
            raise ConfigError(
                f"depths {self.depths}: growth wants at least three, and 2-shortcut "
                "networks want even ones"
            )


PRESETS = {
    "smoke": Config(
        n_seeds=2,
        dataset="digits",
        depths=(2, 4, 8),
        predicted_depths=(2, 4, 8, 16),
        measured_depth=4,
        samples_depth=2,
        n_conventions=50,
    ),
    "quick": Config(n_seeds=4, depths=(2, 4, 8, 16), committed=True),
    "paper": Config(
        n_seeds=10,
        dataset="mnist",
        depths=(2, 4, 8, 16, 24, 32, 48, 64, 96),
        measured_depth=32,
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network, the deepest first, and one for conventions."""
    all_cells = [
        {"kind": kind, "depth": depth, "trial": seed}
        for depth in sorted(config.depths, reverse=True)
        for kind in KINDS
        for seed in config.seeds
    ]
    return [*all_cells, {"kind": "conventions", "depth": 2, "trial": config.seed}]
