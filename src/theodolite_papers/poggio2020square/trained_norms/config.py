"""Networks, data and training of figures 1 to 12, by their captions."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ClassifierBlueprint, ConfigError
from theodolite.studies import StudyConfig

DENSE, CONVOLUTIONAL = "dense", "convolutional"
# The same with fewer units, trained at the rate at which the others cannot be. The
# curvature of the last layer is at most their number, whatever features become, and
# 32 are stable: 0.1 x 32 < 2 (1 + 0.9).
NARROW = {"narrow_dense": DENSE, "narrow_convolutional": CONVOLUTIONAL}
FAST = ("bn_wd", "bn_fast")
MOMENTUM = 0.9
DEPTH = 4  # layers, by every caption
LATE = 5  # last epochs, over which training noise is averaged


@dataclass(frozen=True, kw_only=True)
class Condition:
    """How the networks of some figures are trained."""

    norm: str  # whether layers are normalised over the batch
    rate: float  # learning rate
    decay: float  # weight decay, as a library has it
    starts: tuple[float, ...]  # Frobenius norms of each layer at the start
    figures: str  # where they are shown


# Figure 1's caption has a weight decay of 0.01 and none at all: ``bn_fast`` is the
# second reading.
CONDITIONS = {
    "bn_wd": Condition(
        norm="batch",
        rate=0.1,
        decay=0.01,
        starts=(0.1, 1.0, 5.0),
        figures="figures 1–5",
    ),
    "bn_fast": Condition(
        norm="batch",
        rate=0.1,
        decay=0.0,
        starts=(0.1, 1.0, 5.0),
        figures="figure 1, read without decay",
    ),
    "bn": Condition(
        norm="batch", rate=0.01, decay=0.0, starts=(0.1, 5.0), figures="figures 6–9"
    ),
    "plain": Condition(
        norm="none",
        rate=0.1,
        decay=0.0,
        starts=(5.0, 15.0, 30.0),
        figures="figures 10–12",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Two classes, and networks of four layers."""

    dataset: str = "digits"  # where the classes are from
    classes: tuple[int, int] = (3, 8)  # which two
    width: int = 64  # units of dense layers
    channels: int = 8  # channels of convolutions
    epochs: int = 1000  # passes over the samples, of dense networks
    convolutional_epochs: int = 1000  # the same of convolutional ones
    batch_size: int = 128  # samples per update
    narrow_width: int = 0  # units of narrow dense networks; 0 for none
    narrow_channels: int = 0  # channels of narrow convolutional ones; 0 for none
    narrow_epochs: int = 100  # passes of both
    readings: int = 16  # readings along training, evenly spaced in logarithm
    drawn: int = 1  # trials whose whole course is kept, for figures

    def __post_init__(self) -> None:
        super().__post_init__()
        epochs = self.epochs, self.convolutional_epochs, self.narrow_epochs
        if min(epochs) < 2 * LATE:
            raise ConfigError(
                f"epochs are {epochs}: pass at least {2 * LATE}, the last {LATE} of "
                "which are averaged"
            )
        if self.readings < 3:
            raise ConfigError(f"readings is {self.readings}: pass at least 3")
        if len(set(self.classes)) != 2:
            raise ConfigError(f"classes are {self.classes}: pass two different ones")

    @property
    def families(self) -> dict[str, int]:
        """Families that are trained, with their units or channels."""
        every = {
            DENSE: self.width,
            CONVOLUTIONAL: self.channels,
            "narrow_dense": self.narrow_width,
            "narrow_convolutional": self.narrow_channels,
        }
        return {family: width for family, width in every.items() if width}

    def epochs_of(self, family: str) -> int:
        """Return the passes of a family."""
        if family in NARROW:
            return self.narrow_epochs
        return self.epochs if family == DENSE else self.convolutional_epochs

    def blueprint(
        self, family: str, condition: str, start: float, inputs: tuple[int, ...]
    ) -> ClassifierBlueprint:
        """Return the network of a condition."""
        return ClassifierBlueprint(
            inputs=inputs,
            width=self.families[family],
            depth=DEPTH,
            family=NARROW.get(family, family),  # type: ignore[arg-type]
            norm=CONDITIONS[condition].norm,  # type: ignore[arg-type]
            start_norm=start,
        )


PRESETS = {
    "smoke": Config(
        n_seeds=2, width=16, channels=2, epochs=20, convolutional_epochs=10, readings=3
    ),
    "quick": Config(n_seeds=3, epochs=200, convolutional_epochs=50, committed=True),
    "paper": Config(
        n_seeds=10,
        dataset="cifar10",
        classes=(0, 1),
        width=256,
        channels=32,
        convolutional_epochs=500,
        narrow_width=32,
        narrow_channels=2,
        narrow_epochs=1000,
        readings=14,
    ),
}


def runs(family: str = DENSE) -> list[tuple[str, float]]:
    """Return every condition of a family with each of its starts."""
    return [
        (name, start)
        for name, one in CONDITIONS.items()
        if family not in NARROW or name in FAST
        for start in one.starts
    ]


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per family and seed; all conditions see the same batches."""
    return [
        {"family": family, "trial": trial}
        for family in config.families
        for trial in config.seeds
    ]
