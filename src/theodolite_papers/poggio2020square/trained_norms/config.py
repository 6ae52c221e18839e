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
# Networks that train under every condition: 64 units, or 4 channels of 4 x 4 pixels,
# at the captions' rates and, without normalisation, from smaller starts. Rates that
# the captions do not give are a reading.
_SMALL_TO_LARGE, _UNNORMALISED = (0.1, 1.0, 5.0), (3.0, 5.0, 8.0, 15.0)
MEDIUM = {"medium_dense": DENSE, "medium_convolutional": CONVOLUTIONAL}
MEDIUM_STARTS = {
    "medium_dense": {
        "bn_wd": _SMALL_TO_LARGE,
        "bn_wd_slow": _SMALL_TO_LARGE,
        "bn_fast": _SMALL_TO_LARGE,
        "bn": _SMALL_TO_LARGE,
        "plain": _UNNORMALISED,
        "plain_slow": _UNNORMALISED,
    },
    "medium_convolutional": {
        "bn_wd": (0.1, 5.0),
        "bn": (0.1, 5.0),
        "plain": (5.0, 8.0),
    },
}
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
    "bn_wd_slow": Condition(
        norm="batch", rate=0.01, decay=0.01, starts=(), figures="figures 1–5, rate 0.01"
    ),
    "plain_slow": Condition(
        norm="none", rate=0.01, decay=0.0, starts=(), figures="figures 10–12, rate 0.01"
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
    medium_width: int = 0  # units of dense networks that train everywhere; 0 for none
    medium_channels: int = 0  # channels of convolutional ones; 0 for none
    medium_epochs: int = 1000  # passes of the first
    medium_convolutional_epochs: int = 300  # passes of the second
    stages: int = 8  # readings of both, evenly spaced, kept of every trial
    readings: int = 16  # readings along training, evenly spaced in logarithm
    drawn: int = 1  # trials whose whole course is kept, for figures

    def __post_init__(self) -> None:
        super().__post_init__()
        epochs = tuple(self.epochs_of(family) for family in self.families)
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
            "medium_dense": self.medium_width,
            "medium_convolutional": self.medium_channels,
        }
        return {family: width for family, width in every.items() if width}

    def epochs_of(self, family: str) -> int:
        """Return the passes of a family."""
        if family in NARROW:
            return self.narrow_epochs
        if family in MEDIUM:
            first = MEDIUM[family] == DENSE
            return self.medium_epochs if first else self.medium_convolutional_epochs
        return self.epochs if family == DENSE else self.convolutional_epochs

    def blueprint(
        self, family: str, condition: str, start: float, inputs: tuple[int, ...]
    ) -> ClassifierBlueprint:
        """Return the network of a condition."""
        return ClassifierBlueprint(
            inputs=inputs,
            width=self.families[family],
            depth=DEPTH,
            family=(NARROW | MEDIUM).get(family, family),  # type: ignore[arg-type]
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
        medium_width=64,
        medium_channels=4,
        medium_epochs=740,
        readings=14,
    ),
}


def runs(family: str = DENSE) -> list[tuple[str, float]]:
    """Return every condition of a family with each of its starts."""
    if family in MEDIUM:
        return [(n, s) for n, starts in MEDIUM_STARTS[family].items() for s in starts]
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
