"""Matrices of figure 1, networks and steps of figure 2, and their starts."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

# The three networks of section 6.2.
KINDS: dict[str, dict[str, Any]] = {
    "chain": {"skips": False},
    "res": {},
    "average": {"added": 1.0},
}
STARTS = (
    ("default", 0.25),
    ("default", 1.0),
    ("default", 4.0),
    ("he", 1.0),
    ("xavier", 1.0),
    ("orthogonal", 1.0),
)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Settings of figures 1 and 2 and of hypothesis 6.1."""

    dataset: str = "mnist5k"  # named dataset of grey images of 28 by 28 pixels
    samples: int = 32  # images per trial
    rate: float = 0.1  # learning rate
    steps: int = 30  # steps of gradient descent
    # Steps before which spectra are read, for figure 2.
    spectra_at: tuple[int, ...] = tuple(range(10))
    # Those before which spectra of the scores by the parameters are read.
    parameters_at: tuple[int, ...] = (0, 3, 6, 9, 14, 19, 24, 29)
    # The same on pixels between 0 and 1; none to leave that out.
    script_at: tuple[int, ...] = (0, 9)
    script_trials: int = 8  # trials of that
    block_samples: int = 4  # samples whose Jacobians of the two blocks alone are taken
    # Initialisation schemes and factors on the blocks' weights, at which spectra are
    # read before the first step.
    starts: tuple[tuple[str, float], ...] = STARTS
    start_trials: int = 6  # trials of each start
    start_steps: int = 30  # steps of training from each start
    size: int = 500  # side of the matrices of figure 1
    matrices: int = 5  # number of them

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.block_samples <= self.samples:
            raise ConfigError(
                f"block_samples is {self.block_samples}: pass a number from 1 to "
                f"samples, which is {self.samples}"
            )
        read = (*self.spectra_at, *self.parameters_at, *self.script_at)
        late = [step for step in read if step > self.steps]
        if late or min(self.steps, self.start_steps) < 10:
            raise ConfigError(
                f"training of {self.steps} and {self.start_steps} steps with spectra "
                f"at {self.spectra_at}: both want at least 10 steps, and spectra "
                "within them"
            )


PRESETS = {
    "smoke": Config(
        n_seeds=2,
        samples=6,
        steps=10,
        spectra_at=(0,),
        parameters_at=(0,),
        script_at=(0,),
        script_trials=2,
        block_samples=1,
        starts=STARTS[:3],
        start_trials=2,
        start_steps=10,
        size=200,
        matrices=3,
    ),
    "quick": Config(
        n_seeds=2,
        samples=16,
        spectra_at=(2, 7),
        parameters_at=(2,),
        script_at=(),
        starts=STARTS[:3],
        start_trials=2,
        matrices=3,
        committed=True,
    ),
    # New trials; the claims were written after looking at others.
    "paper": Config(n_seeds=20, seed=100),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network, one per matrix, and one for the pools."""
    trials = config.seeds
    all_cells: list[dict[str, Any]] = [
        {"part": "figure", "kind": kind, "trial": trial}
        for kind in KINDS
        for trial in trials
    ]
    if config.script_at:
        all_cells += [
            {"part": "script", "kind": kind, "trial": trial}
            for kind in KINDS
            for trial in trials[: config.script_trials]
        ]
    all_cells += [
        {"part": "start", "kind": kind, "init": init, "gain": gain, "trial": trial}
        for init, gain in config.starts
        for kind in KINDS
        for trial in trials[: config.start_trials]
    ]
    all_cells += [
        {"part": "matrix", "trial": config.seed + i} for i in range(config.matrices)
    ]
    return [*all_cells, {"part": "pools", "trial": config.seed}]
