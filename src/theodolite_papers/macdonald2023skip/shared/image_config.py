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
    """Networks and training of a table; defaults are those of Table 1.

    Attributes:
        dataset: Named dataset of images.
        samples: Training images used, from the front; 0 for all.
        channels: Channels of the images.
        classes: Number of classes.
        width: Channels of the first stage.
        blocks: Blocks of every stage.
        block: ``basic`` or ``bottleneck``.
        stem: ``small`` or ``large``.
        added: Scales of the identity added to projections, 0 for the original.
        rates: Learning rates at the start.
        epochs: Passes over the images, a multiple of 3.
        factor: Of the rate, after each third of training.
        batch_size: Images per step.
        momentum: Of plain momentum descent.
        weight_decay: Of all parameters.
        padding: Black pixels around an image, for random crops; 0 for none.
        flip: Whether images are mirrored left and right at random.
        precision: ``float32``, ``tf32`` or ``bf16``.
        test_every: Epochs from one test to the next.
    """

    dataset: str = "cifar10"
    samples: int = 0
    channels: int = 3
    classes: int = 10
    width: int = 64
    blocks: tuple[int, ...] = (2, 2, 2, 2)
    block: str = "basic"
    stem: str = "small"
    added: tuple[float, ...] = (ORIGINAL, MODIFIED)
    rates: tuple[float, ...] = RATES
    epochs: int = 90
    factor: float = 0.2
    batch_size: int = 128
    momentum: float = 0.0
    weight_decay: float = 0.0
    padding: int = 4
    flip: bool = True
    precision: str = "float32"
    test_every: int = 10

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
    return [
        {"rate": rate, "added_identity": scale, "trial": seed}
        for seed in config.seeds
        for rate in config.rates
        for scale in config.added
    ]
