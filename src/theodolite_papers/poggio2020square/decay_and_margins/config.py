"""Decays, starts and label noises of the trained classifiers."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

# The decay of the captions of figures 1 to 5, and the ends of the starts in them.
PAPER_DECAY, SMALL_START, LARGE_START = 0.01, 0.1, 5.0
# A run is close to interpolation if its mean squared residual is below this; labels
# are -1 and +1.
FITTED = 0.1
# Outputs of zero have a loss of 1: a run that does not end a tenth below is dead.
LEARNT = 0.9
# Thresholds are decays at which the dependence falls to these shares.
LEVELS = (0.5, 0.2)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Two classes, four dense layers with batch norms, the square loss."""

    dataset: str = "mnist5k"  # named dataset
    classes: tuple[int, ...] = (4, 9)  # which two of its classes
    each: int = 128  # training samples of each class; 0 for all
    coarse: int = 4  # pixels per side of the squares that are averaged
    width: int = 24  # units of the hidden layers
    # Weight decays, in torch's convention; 0 and the paper's are among them.
    decays: tuple[float, ...] = (0.0, 0.001, 0.002, 0.004, 0.01, 0.03)
    # Frobenius norms of every layer at the start.
    starts: tuple[float, ...] = (0.1, 1.0, 5.0)
    # Sizes of label noise, tried without decay from the starts 0.1 and 5.
    noises: tuple[float, ...] = (0.3, 1.0)
    epochs: int = 400  # passes over the samples
    rate: float = 0.1  # learning rate
    batch_size: int = 128  # samples per step
    stages: int = 0  # readings along training, evenly spaced; 0 for none

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.classes) != 2:
            raise ConfigError(f"classes are {self.classes}: pass two")
        if not {0.0, PAPER_DECAY} <= set(self.decays) or len(self.decays) < 4:
            raise ConfigError(
                f"decays are {self.decays}: pass at least four, with 0 and "
                f"{PAPER_DECAY} among them"
            )
        ends = {SMALL_START, LARGE_START}
        if len(self.starts) < 3 or not ends <= set(self.starts):
            raise ConfigError(
                f"starts are {self.starts}: pass at least three, {SMALL_START} and "
                f"{LARGE_START} among them"
            )
        if min(self.noises, default=0.0) <= 0:
            raise ConfigError(f"noises are {self.noises}: pass positive ones")
        if self.epochs < 20:
            raise ConfigError(f"epochs is {self.epochs}: pass 20 or more")

    @property
    def lengths(self) -> tuple[int, ...]:
        """Epochs at which runs are read as if training ended there."""
        return tuple(self.epochs // part for part in (4, 2, 1))

    @property
    def epochs_seen(self) -> tuple[int, ...]:
        """Epochs at which networks are read: near every length, and early."""
        near = {round(share * n) for n in self.lengths for share in (0.8, 0.9, 1.0)}
        return tuple(sorted({1, *near, *self.curve_epochs}))

    @property
    def curve_epochs(self) -> tuple[int, ...]:
        """Epochs at which whole curves are kept."""
        parts = range(1, self.stages + 1)
        return tuple(dict.fromkeys(round(self.epochs * k / self.stages) for k in parts))


PRESETS = {
    "smoke": Config(
        n_seeds=3,
        decays=(0.0, 0.003, 0.01, 0.03, 0.1),
        each=64,
        width=16,
        batch_size=64,
        epochs=120,
    ),
    "quick": Config(n_seeds=8, committed=True),
    "paper": Config(
        n_seeds=10,
        dataset="cifar10",
        classes=(0, 1),
        each=0,
        coarse=1,
        # At rate 0.1 no more than 117 units are stable behind a batch norm.
        width=64,
        noises=(0.1, 1.0),
        decays=(0.0, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 0.001, 0.01),
        epochs=1000,
        stages=8,
    ),
}


def runs(config: Config) -> list[tuple[float, float, float]]:
    """Return decay, start and noise of the networks of a trial."""
    quiet = [(decay, start, 0.0) for decay in config.decays for start in config.starts]
    ends = (SMALL_START, LARGE_START)
    return quiet + [(0.0, start, noise) for noise in config.noises for start in ends]


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per trial: its networks share samples and their order."""
    return [{"trial": trial} for trial in config.seeds]
