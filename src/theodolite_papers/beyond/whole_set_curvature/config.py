"""Settings: networks, two kinds of training, and when their curvature is read."""

from dataclasses import dataclass
from typing import Any, Literal

from theodolite.core import ConfigError, ResnetBlueprint
from theodolite.studies import CommittedRun, StudyConfig

RUN = CommittedRun(
    "theodolite_papers.beyond",
    "whole_set_curvature",
    free=("n_seeds", "moments", "stochastic_moments", "one_graph", "chunk"),
)

DESCENT, STOCHASTIC = "descent", "stochastic"
RULES = (DESCENT, STOCHASTIC)
START, END = 0.0, 1.0
LATE = 0.8  # training is "late" from this share on
# Readings: the statistics that norms use, and the samples of the loss.
WHOLE, TOGETHER, BATCHES = "whole", "batches together", "single batches"
FROZEN, FROZEN_BATCHES = "frozen", "single batches, frozen"
RUNNING = "running"
READINGS = (WHOLE, RUNNING, FROZEN, FROZEN_BATCHES, TOGETHER, BATCHES)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Settings of the readings; defaults are those of CIFAR-10.

    A moment is a share of training. The whole set of a network is what it is trained
    on: for full-batch descent a part of the images, so that every step sees all of it.
    """

    dataset: str = "cifar10"  # named dataset of images
    channels: int = 3  # channels of the images
    classes: int = 10  # number of classes
    width: int = 16  # channels of the first stage
    blocks: tuple[int, ...] = (3, 3, 3)  # blocks of every stage
    samples: int = 0  # images of stochastic descent, from the front; 0 for all
    # As many as Cohen et al. (2021), Gradient descent on neural networks typically
    # occurs at the edge of stability, take of CIFAR-10 for full-batch descent.
    descent_samples: int = 5000  # images of full-batch descent, from the front
    # He et al. (2016), Deep residual learning, section 4.2: ResNet-20 on CIFAR-10 is
    # trained in batches of 128 at rate 0.1 with momentum 0.9.
    # Images of a batch, in stochastic descent and when batches are read.
    batch_size: int = 128
    rate: float = 0.1  # learning rate of stochastic descent
    momentum: float = 0.9  # of stochastic descent
    read_batches: int = 16  # batches that are read one by one, at most
    epochs: int = 30  # of stochastic descent
    # Learning rate of full-batch descent, which has no momentum.
    descent_rate: float = 0.1
    steps: int = 600  # of full-batch descent
    # The ends first: they are what most claims are about.
    # Moments at which full-batch descent is read, in this order.
    moments: tuple[float, ...] = (0.0, 1.0, 0.9, 0.8, 0.02, 0.1, 0.3, 0.6)
    # The same for stochastic descent.
    stochastic_moments: tuple[float, ...] = (0.0, 1.0, 0.2, 0.03, 0.5)
    # Moments with more readings: six ways instead of two for full-batch descent, three
    # instead of two for stochastic descent.
    corners: tuple[float, ...] = (1.0,)
    one_graph: int = 5000  # largest set that is one graph
    # Images per chunk of a larger set; 0 for as many as fit into memory.
    chunk: int = 5000
    tol: float = 0.01  # wanted relative error of an eigenvalue
    products: int = 60  # most Hessian products per eigenvalue
    # Precision of training on a GPU; on a CPU it is ``float32``.
    precision: Literal["float32", "tf32"] = "tf32"
    # Whether networks are trained and read in double precision. If not, the error
    # that rounding makes in the curvature is measured on one batch.
    double: bool = False
    # Whether convolutions use TF32 on a GPU when curvature is read.
    coarse: bool = False
    # Whether each moment is a separate cell, so that an interrupted run resumes at the
    # next moment.
    by_moment: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("moments", "stochastic_moments"):
            shares = getattr(self, name)
            if not {START, END} <= set(shares) or not all(0 <= m <= 1 for m in shares):
                raise ConfigError(
                    f"{name} are {shares}: pass shares of training from 0 to 1, both "
                    "ends among them"
                )
        if not 0 < self.batch_size < self.descent_samples:
            raise ConfigError(
                f"batch_size is {self.batch_size} and descent_samples "
                f"{self.descent_samples}: pass batches smaller than the whole set"
            )
        if self.samples and self.samples <= self.batch_size:
            raise ConfigError(
                f"samples is {self.samples} for batches of {self.batch_size}: pass "
                "more, or 0 for all"
            )

    @property
    def plan(self) -> ResnetBlueprint:
        """Blueprint of the network: 20 layers with the default blocks."""
        return ResnetBlueprint(
            width=self.width,
            blocks=self.blocks,
            channels=self.channels,
            classes=self.classes,
        )

    def samples_of(self, rule: str) -> int:
        """Return how many images a rule trains on; 0 for all."""
        return self.descent_samples if rule == DESCENT else self.samples

    def moments_of(self, rule: str) -> tuple[float, ...]:
        """Return the moments at which networks of a rule are read."""
        return self.moments if rule == DESCENT else self.stochastic_moments


# One block on few 8×8 digits, which needs no files and no GPU.
_SMALL: dict[str, Any] = {
    "dataset": "digits",
    "channels": 1,
    "blocks": (1,),
    "batch_size": 16,
    "chunk": 0,
    "precision": "float32",
    "double": True,
    "by_moment": False,
}
PRESETS = {
    "smoke": Config(
        n_seeds=2,
        width=2,
        samples=32,
        descent_samples=32,
        steps=4,
        epochs=2,
        moments=(0.0, 1.0),
        stochastic_moments=(0.0, 1.0),
        tol=0.2,
        **_SMALL,
    ),
    "quick": Config(
        n_seeds=4,
        committed=True,
        width=6,
        samples=128,
        descent_samples=128,
        read_batches=3,
        rate=0.05,
        epochs=20,
        descent_rate=0.2,
        steps=120,
        moments=(0.0, 0.8, 1.0),
        stochastic_moments=(0.0, 1.0),
        tol=0.02,
        **_SMALL,
    ),
    "paper": Config(n_seeds=3, device="cuda"),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network, or per moment of it: start and end come first."""
    if not config.by_moment:
        return [{"rule": r, "trial": t} for t in config.seeds for r in RULES]
    longest = max(len(config.moments_of(rule)) for rule in RULES)
    return [
        {"rule": rule, "trial": trial, "moment": config.moments_of(rule)[place]}
        for place in range(longest)
        for rule in RULES
        for trial in config.seeds
        if place < len(config.moments_of(rule))
    ]
