"""Settings that the studies of pre-activation networks share, without torch."""

import math
from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import CommittedRun, StudyConfig

# Networks of figure 9, without the norms of those that figure 2 has as well.
RUN = CommittedRun(
    "theodolite_papers.li2016demystifying",
    "preactivation_cifar10",
    free=("depths", "shortcuts"),
)
# Narrow networks on 8×8 digits, which need no files and no GPU.
SMALL: dict[str, Any] = {
    "dataset": "digits",
    "width": 4,
    "batch_size": 64,
    "padding": 1,
    "flip": False,
}


@dataclass(frozen=True, kw_only=True)
class CifarConfig(StudyConfig):
    """Networks and training of figures 2 and 9."""

    dataset: str = "cifar10"  # named dataset of images
    samples: int = 0  # training images used, from the front; 0 for all
    # Convolutions of the units plus 2; units of every shortcut depth fill every stage.
    depths: tuple[int, ...] = (38, 74, 110)
    shortcuts: tuple[int, ...] = (1, 2, 3, 4)  # layers per unit
    width: int = 16  # channels of the first stage
    stages: int = 3  # stages of a network
    epochs: int = 16  # passes over the images
    batch_size: int = 128  # images per step
    # Learning rate at the start; it falls as in the paper's schedule, at the same
    # fractions of training.
    rate: float = 0.1
    # Pixels of the mean colour around an image, for random crops; 0 for none.
    padding: int = 4
    flip: bool = True  # whether images are mirrored at random
    precision: str = "float32"  # ``float32``, ``tf32`` or ``bf16``

    def __post_init__(self) -> None:
        super().__post_init__()
        step = math.lcm(*self.shortcuts) * self.stages
        if cut := [d for d in self.depths if d < 3 or (d - 2) % step]:
            raise ConfigError(
                f"depth {cut[0]} does not give units of "
                f"{', '.join(map(str, self.shortcuts))} layers whole stages: pass 2 "
                f"plus a multiple of {step}, such as {2 + step}"
            )

    @property
    def channels(self) -> int:
        """Channels of the images."""
        return 3 if self.dataset.startswith("cifar") else 1

    def layers(self, depth: int) -> list[tuple[int, int]]:
        """Return channels into and out of every convolution of the units."""
        each = (depth - 2) // self.stages
        out = [self.width * 2**k for k in range(self.stages) for _ in range(each)]
        return list(zip([self.width, *out[:-1]], out, strict=True))


def paper_config(kind: type[CifarConfig], **own: Any) -> Any:
    """Return the config of the committed run, with the study's own settings."""
    planned: dict[str, Any] = {
        "n_seeds": 3,
        "device": "cuda",
        "precision": "bf16",
        **RUN.config(),
        "committed": False,
        **own,
    }
    for name, value in planned.items():
        planned[name] = tuple(value) if isinstance(value, list) else value
    return kind(**planned)


def training_cells(config: CifarConfig) -> list[dict[str, Any]]:
    """Return one cell per network, the deepest first."""
    return [
        {"shortcut": n, "depth": depth, "trial": seed}
        for depth in sorted(config.depths, reverse=True)
        for n in config.shortcuts
        for seed in config.seeds
    ]
