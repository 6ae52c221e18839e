"""Settings of original and modified ResNets in training, without torch."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError, ResnetBlueprint
from theodolite.studies import StudyConfig

# Those of the appendix: "we ran … each of the learning rates".
RATES = (0.2, 0.1, 0.05, 0.02)
ORIGINAL, MODIFIED = 0.0, 1.0
# Narrow networks on 8×8 digits, which need no files and no GPU.
SMALL: dict[str, Any] = {
    "dataset": "digits",
    "channels": 1,
    "width": 8,
    "blocks": (1, 1, 1),
    "batch_size": 16,
    "padding": 1,
    "flip": False,
}


@dataclass(frozen=True, kw_only=True)
class ImageConfig(StudyConfig):
    """Networks and training of a table; defaults are those of Table 1."""

    dataset: str = "cifar10"  # named dataset of images
    samples: int = 0  # training images used, from the front; 0 for all
    channels: int = 3  # channels of the images
    classes: int = 10  # number of classes
    width: int = 64  # channels of the first stage
    blocks: tuple[int, ...] = (2, 2, 2, 2)  # blocks of every stage
    block: str = "basic"  # ``basic`` or ``bottleneck``
    stem: str = "small"  # ``small`` or ``large``
    # Scales of the identity added to projections, 0 for the original.
    added: tuple[float, ...] = (ORIGINAL, MODIFIED)
    rates: tuple[float, ...] = RATES  # learning rates at the start
    epochs: int = 90  # passes over the images, a multiple of 3
    factor: float = 0.2  # of the rate, after each third of training
    batch_size: int = 128  # images per step
    momentum: float = 0.0  # of plain momentum descent
    weight_decay: float = 0.0  # of all parameters
    padding: int = 4  # black pixels around an image, for random crops; 0 for none
    flip: bool = True  # whether images are mirrored left and right at random
    precision: str = "float32"  # ``float32``, ``tf32`` or ``bf16``
    test_every: int = 10  # epochs from one test to the next

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs < 3 or self.epochs % 3:
            raise ConfigError(
                f"epochs is {self.epochs}: the rate falls after each third of "
                "training, so pass a multiple of 3"
            )

    def plan(self, added_identity: float) -> ResnetBlueprint:
        """Return the blueprint of the original or a modified network."""
        return ResnetBlueprint(
            width=self.width,
            blocks=self.blocks,
            block=self.block,  # type: ignore[arg-type]
            stem=self.stem,  # type: ignore[arg-type]
            channels=self.channels,
            classes=self.classes,
            added_identity=added_identity,
        )


def image_cells(config: ImageConfig) -> list[dict[str, Any]]:
    """Return one cell per network; original and modified of a pair are neighbours."""
    labels = {"precision": config.precision}
    return [
        {"rate": rate, "added_identity": scale, "trial": seed, **labels}
        for seed in config.seeds
        for rate in config.rates
        for scale in config.added
    ]
