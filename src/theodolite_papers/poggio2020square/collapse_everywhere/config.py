"""Classes, decays and starts of the classifiers whose features may collapse."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

LOSSES = ("square", "cross_entropy")
Run = tuple[Any, float, float, float]  # loss, decay, start, rate
# Labels of a cell; those of other rates are given ones as well.
GIVEN, FLIPPED, OTHER_RATES = "given", "flipped", "given, other rates"
SMALL_START, LARGE_START = 0.1, 5.0


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Four dense layers with batch norms, one output per class."""

    dataset: str = "mnist5k"  # named dataset
    # Groups of its classes; two classes and more are among them, the largest group
    # last, on which both losses are compared.
    tasks: tuple[tuple[int, ...], ...] = ((4, 9), (3, 5, 8), tuple(range(10)))
    # Training samples of a group, rounded up to equally many of each class; 0 for all.
    samples: int = 256
    held: int = 0  # samples of each class held out, at most; 0 for all
    coarse: int = 4  # pixels per side of the squares that are averaged
    width: int = 24  # units of the hidden layers
    # Weight decays, in torch's convention; the first is 0.
    decays: tuple[float, ...] = (0.0, 0.003, 0.01)
    epochs: int = 300  # passes over the samples
    rate: float = 0.1  # learning rate
    # Further rates, at which both losses are compared without decay.
    other_rates: tuple[float, ...] = ()
    batch_size: int = 128  # samples per step
    # Share of wrong labels in the runs with flipped labels.
    wrong: float = 0.2
    shared: bool = False  # whether all trials have the samples and flips of trial 0

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = [len(task) for task in self.tasks]
        if sizes[0] != 2 or len(sizes) < 2 or sorted(set(sizes)) != sizes:
            raise ConfigError(
                f"tasks have {sizes} classes: pass one of 2 and larger ones after it, "
                "each of another size"
            )
        if self.decays[0] != 0 or len(self.decays) < 2 or min(self.decays) < 0:
            raise ConfigError(
                f"decays are {self.decays}: pass 0 first, then positive ones"
            )
        if not 0 < self.wrong < 1:
            raise ConfigError(f"wrong is {self.wrong}: pass a share between 0 and 1")
        if self.epochs < 20:
            raise ConfigError(f"epochs is {self.epochs}: pass 20 or more")

    @property
    def starts(self) -> tuple[float, float]:
        """Frobenius norms of every layer at the start."""
        return SMALL_START, LARGE_START

    @property
    def compared(self) -> int:
        """Classes of the task on which losses are compared."""
        return len(self.tasks[-1])

    def each(self, task: tuple[int, ...]) -> int:
        """Training samples of each class; 0 for all."""
        return -(-self.samples // len(task))


PRESETS = {
    "smoke": Config(
        n_seeds=3,
        tasks=((4, 9), (3, 5, 8)),
        samples=128,
        held=60,
        width=16,
        decays=(0.0, 0.01),
        batch_size=64,
        epochs=45,
    ),
    "quick": Config(n_seeds=5, committed=True),
    "paper": Config(
        n_seeds=10,
        dataset="cifar10",
        tasks=((0, 1), (0, 1, 2), tuple(range(10))),
        # As many as 64 units can fit; more units are unstable at this rate.
        samples=10_000,
        shared=True,
        coarse=1,
        width=64,
        decays=(0.0, 1e-4, 0.001, 0.01),
        epochs=80,
        other_rates=(0.01, 0.03),
    ),
}


def runs(config: Config, cell: dict[str, Any]) -> list[Run]:
    """Return loss, decay, start and rate of the networks of a cell."""
    square, other = LOSSES
    last, rate = config.decays[-1], config.rate
    if cell["labels"] == FLIPPED:
        return [(x, d, SMALL_START, rate) for x in LOSSES for d in (0.0, last)]
    if cell["labels"] == OTHER_RATES:
        return [
            (x, 0.0, s, r)
            for x in LOSSES
            for s in config.starts
            for r in config.other_rates
        ]
    listed: list[Run] = [
        (square, d, s, rate) for d in config.decays for s in config.starts
    ]
    if cell["classes"] == config.compared:
        listed += [(other, d, s, rate) for d in (0.0, last) for s in config.starts]
    return listed


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per trial and task, largest first, and those of both losses."""
    most = config.compared
    compared = (GIVEN, FLIPPED, OTHER_RATES)[: 3 if config.other_rates else 2]
    return [
        cell
        for trial in config.seeds
        for cell in (
            *(
                {"trial": trial, "classes": most, "labels": labels}
                for labels in compared
            ),
            *(
                {"trial": trial, "classes": len(task), "labels": GIVEN}
                for task in config.tasks[:-1]
            ),
        )
    ]
