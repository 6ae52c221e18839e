"""Networks, the two ways they are trained, and when their curvature is read."""

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
LATE = 0.8  # share of training from which on it is late
# Readings: whose statistics norms use, over which samples.
WHOLE, TOGETHER, BATCHES = "whole", "batches together", "single batches"
FROZEN, FROZEN_BATCHES = "frozen", "single batches, frozen"
RUNNING = "running"
READINGS = (WHOLE, RUNNING, FROZEN, FROZEN_BATCHES, TOGETHER, BATCHES)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Settings of the readings; defaults are those of CIFAR-10.

    A moment is a share of training. The whole set of a network is what it is trained
    on: for full-batch descent a part of the images, so that every step sees all of it.

    Attributes:
        dataset: Named dataset of images.
        channels: Channels of the images.
        classes: Number of classes.
        width: Channels of the first stage.
        blocks: Blocks of every stage.
        samples: Images of stochastic descent, from the front; 0 for all.
        descent_samples: Images of full-batch descent, from the front.
        batch_size: Images of a batch, in stochastic descent and when batches are read.
        read_batches: Batches that are read one by one, at most.
        rate: Learning rate of stochastic descent.
        momentum: Of stochastic descent.
        epochs: Of stochastic descent.
        descent_rate: Learning rate of full-batch descent, which has no momentum.
        steps: Of full-batch descent.
        moments: When descent is read, in the order of the readings.
        stochastic_moments: The same of stochastic descent.
        corners: Moments at which a network of full-batch descent is read in six ways
            and one of stochastic descent in three, not in two only.
        one_graph: Images up to which a set is one graph.
        chunk: Images that pass at once where a set has more; 0 for as many as fit.
        tol: Wanted relative error of an eigenvalue.
        products: Most products an eigenvalue may take.
        precision: Arithmetic of training on a GPU; elsewhere it is ``float32``.
        double: Whether curvature is read in double precision, and networks trained in
            it; where it is not, what rounding does to it is measured at a batch.
        coarse: Whether convolutions use TF32 when curvature is read on a GPU.
        by_moment: Whether each moment is a separate cell, so that a long run that
            was interrupted continues at the next.
    """

    dataset: str = "cifar10"
    channels: int = 3
    classes: int = 10
    width: int = 16
    blocks: tuple[int, ...] = (3, 3, 3)
    samples: int = 0
    # As many as Cohen et al. (2021), Gradient descent on neural networks typically
    # occurs at the edge of stability, take of CIFAR-10 for full-batch descent.
    descent_samples: int = 5000
    # He et al. (2016), Deep residual learning, section 4.2: ResNet-20 on CIFAR-10 is
    # trained in batches of 128 at rate 0.1 with momentum 0.9.
    batch_size: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    read_batches: int = 16
    epochs: int = 30
    descent_rate: float = 0.1
    steps: int = 600
    # The ends first: they are what most claims are about.
    moments: tuple[float, ...] = (0.0, 1.0, 0.9, 0.8, 0.02, 0.1, 0.3, 0.6)
    stochastic_moments: tuple[float, ...] = (0.0, 1.0, 0.2, 0.03, 0.5)
    corners: tuple[float, ...] = (1.0,)
    one_graph: int = 5000
    chunk: int = 5000
    tol: float = 0.01
    products: int = 60
    precision: Literal["float32", "tf32"] = "tf32"
    double: bool = False
    coarse: bool = False
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
        """The network: of 20 layers with the blocks that are default."""
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
        """Return when networks of a rule are read."""
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
    """Return one cell per network, or per moment of it with both ends first."""
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
