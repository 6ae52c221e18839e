"""Depths, levels and data of figures 5 and 6."""

from dataclasses import dataclass
from typing import Any

from theodolite.studies import StudyConfig

# As at initialisation (figure 4), each with a learning rate below 2 divided by the
# largest curvature during training.
KINDS: dict[str, dict[str, Any]] = {
    "xavier": {"shortcut": 1, "skip": False, "init": "xavier"},
    "orthogonal": {"shortcut": 1, "skip": False, "init": "orthogonal"},
    "one_shortcut": {"shortcut": 1, "init": "small"},
    "two_shortcut": {"shortcut": 2, "init": "small"},
}
RATES = {
    "xavier": 0.002,
    "orthogonal": 0.01,
    "one_shortcut": 0.01,
    "two_shortcut": 0.05,
}
# The kinds that the text compares; they are trained at all seeds and depths.
PAIR = ("two_shortcut", "orthogonal")


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths, levels and data of figures 5 and 6."""

    dataset: str = "mnist5k"  # named dataset, whitened
    width: int = 10  # principal components kept
    # Weight matrices: the first number is the paper's and has every kind, the others
    # are checks with the two kinds that the text compares.
    depths: tuple[int, ...] = (16, 12)
    n_others: int = 10  # seeds of the kinds that the prose does not compare
    n_runs: int = 2  # networks followed step by step, for figure 6, right
    # Depths at which the index is counted at the start.
    shallow: tuple[int, ...] = (2, 4, 8)
    # Levels of the loss: the optimum plus these fractions of the way to the loss at
    # zero weights.
    fractions: tuple[float, ...] = (0.75, 0.3, 0.1, 0.02, 0.005, 0.0015)
    steps: int = 4000  # updates of each run at most
    run_steps: int = 150  # updates of the runs of figure 6, right
    every: int = 10  # steps between their Hessians
    # Up to this depth the first network's Hessians are measured by double backward; all
    # others come from second moments.
    measured_depth: int = 12


PRESETS = {
    "smoke": Config(
        n_seeds=2,
        dataset="digits",
        depths=(6, 4),
        n_others=2,
        shallow=(2, 4),
        fractions=(0.6, 0.2, 0.04, 0.01, 0.003),
        steps=2500,
        run_steps=100,
        every=5,
    ),
    "quick": Config(
        n_seeds=3,
        committed=True,
        depths=(16,),
        n_others=0,
        fractions=(0.75, 0.15, 0.01, 0.002),
    ),
    "paper": Config(
        n_seeds=10,
        dataset="mnist",
        n_runs=4,
        fractions=(0.9, 0.75, 0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.025, 0.015, 0.01,
                   0.007, 0.005, 0.003, 0.002, 0.0015, 0.001),
        steps=20_000,
        run_steps=300,
        every=3,
        measured_depth=16,
    ),
}  # fmt: skip


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per run, the deepest first."""
    all_cells = []
    for depth in config.depths:
        for kind in KINDS if depth == config.depths[0] else PAIR:
            n = config.n_seeds if kind in PAIR else config.n_others
            all_cells += [
                {"task": "levels", "kind": kind, "depth": depth, "trial": seed}
                for seed in config.seeds[:n]
            ]
    runs = [
        {"task": "run", "kind": PAIR[0], "depth": config.depths[0], "trial": seed}
        for seed in config.seeds[: config.n_runs]
    ]
    starts = [
        {"task": "start", "kind": kind, "depth": depth, "trial": seed}
        for depth in config.shallow
        for kind in ("xavier", "orthogonal")
        for seed in config.seeds
    ]
    return [*runs, *all_cells, *starts]
