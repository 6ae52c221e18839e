"""Networks, tasks and training whose path ensembles are followed."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import (
    ConfigError,
    LayerwiseBlueprint,
    PreactivationBlueprint,
    unknown_name,
)

from ..shared.layerwise_config import (
    LONG,
    READOUTS,
    SHORT,
    TrainedConfig,
    spaced,
    stages,
)

CLASSES = {"gaussians": 50, "mnist": 10, "digits": 10, "cifar10": 10}
LAYERWISE, IMAGES = "layerwise", "images"
LAYERWISE_NORMS = ("scalar", "batch", "none")
# With batch normalisation whose scales and shifts do not decay, EXEMPT.
EXEMPT = "batch_exempt"
IMAGE_NORMS = ("batch", EXEMPT, "none")
# Factors on all scales, or on all weights, of networks at their start.
FACTORS = (0.5, 1.0, 2.0)


@dataclass(frozen=True, kw_only=True)
class Config(TrainedConfig):
    """Fully connected networks of equation 20, and residual networks for images."""

    # Datasets of the fully connected networks.
    tasks: tuple[str, ...] = ("gaussians",)
    # Their ReLU layers. All trainings are of the first task and depth, the longest is
    # of all tasks and depths.
    depths: tuple[int, ...] = (10,)
    width: int = 50  # their units per layer
    samples: int = 0  # training samples, from the front; 0 for all of a dataset
    probes: int = 32  # samples on which an ensemble is read
    image_tasks: tuple[str, ...] = ()  # datasets of the convolutional networks
    image_depths: tuple[int, ...] = ()  # their convolutions plus 2
    # Norms that do not decay, and readouts other than the usual, are of the least depth
    # alone.
    image_norms: tuple[str, ...] = ("batch", "none")
    image_readouts: tuple[float, ...] = READOUTS[:1]  # factors on the readout
    image_seeds: int = 10  # at most so many of each kind
    image_width: int = 16  # channels of their first stage
    image_stages: int = 3  # their stages
    image_samples: int = 0  # images trained on, from the front; 0 for all
    image_batch: int = 128  # images per update
    epochs: int = 1  # passes over the images
    image_rate: float = 0.1  # learning rate at the start with batch normalisation
    plain_rate: float = 0.02  # the same without
    # ``float32``, ``tf32`` or ``bf16``; readings are in float64.
    precision: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.probes < 2:
            raise ConfigError(f"probes is {self.probes}: pass at least 2 samples")
        for norm in self.image_norms:
            if norm not in IMAGE_NORMS:
                raise unknown_name("norm", norm, IMAGE_NORMS)

    def image_reading_steps(self, images: int) -> tuple[int, ...]:
        """Updates after which a convolutional network is read."""
        total = self.epochs * (images // self.image_batch)
        return tuple(sorted({*stages(total), *spaced(total, min(8, total))}))

    def layerwise_plan(self, cell: Any, inputs: int, classes: int) -> Any:
        """Return the blueprint of a fully connected network."""
        return LayerwiseBlueprint(
            inputs=inputs,
            width=self.width,
            depth=cell["depth"],
            classes=classes,
            norm=cell["norm"],
            # Half the usual size, at which networks without normalisation train.
            init_scale=0.5 if cell["norm"] == "none" else 1.0,
        )

    def image_plan(self, cell: Any, channels: int) -> PreactivationBlueprint:
        """Return the blueprint of a convolutional network."""
        plan = PreactivationBlueprint(
            depth=cell["depth"],
            width=self.image_width,
            stages=self.image_stages,
            channels=channels,
            norm="none" if cell["norm"] == "none" else "batch",
        )
        if plan.norm == "batch":
            return plan
        # This keeps the size of the last layer independent of the depth.
        return plan.with_(branch_scale=plan.units**-0.5)


PRESETS = {
    "smoke": Config(
        n_seeds=2,
        rates=(0.05,),
        tasks=("gaussians",),
        depths=(5,),
        width=16,
        samples=300,
        updates=32,
        long_updates=48,
        probes=8,
        image_tasks=("digits",),
        image_depths=(4,),
        image_norms=IMAGE_NORMS,
        image_readouts=READOUTS,
        image_width=4,
        image_stages=1,
        image_samples=64,
        image_batch=16,
    ),
    "quick": Config(
        n_seeds=2,
        samples=2000,
        rates=(0.05,),
        updates=160,
        image_tasks=("digits",),
        image_depths=(14,),
        image_norms=IMAGE_NORMS,
        image_readouts=READOUTS,
        image_width=4,
        image_stages=1,
        image_batch=64,
        image_samples=1000,
        epochs=2,
        committed=True,
    ),
    "paper": Config(
        n_seeds=10,
        device="cuda",
        tasks=("gaussians", "mnist"),
        depths=(10, 20),
        samples=20_000,
        long_updates=5000,
        image_tasks=("cifar10",),
        image_depths=(20, 38, 56),
        image_norms=IMAGE_NORMS,
        image_readouts=READOUTS,
        epochs=5,
        precision="bf16",
    ),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network: images first, then by seed, costliest first."""
    recipes = [
        (norm, {"horizon": LONG, "readout": readout, "rate": rate})
        for readout in config.image_readouts
        for norm in config.image_norms
        for rate in [config.plain_rate if norm == "none" else config.image_rate]
    ]
    images = [
        _cell(IMAGES, task, norm, depth, recipe, trial)
        for trial in config.seeds[: config.image_seeds]
        for depth in sorted(config.image_depths, reverse=True)
        for task in config.image_tasks
        for norm, recipe in recipes
        if depth == min(config.image_depths)
        or (norm != EXEMPT and recipe["readout"] == READOUTS[0])
    ]
    first = [*config.tasks[:1], *config.depths[:1]]
    return images + [
        _cell(LAYERWISE, task, norm, depth, training, trial)
        for trial in config.seeds
        for depth in sorted(config.depths, reverse=True)
        for task in config.tasks
        for norm in LAYERWISE_NORMS
        for training in config.trainings
        if training["horizon"] != SHORT or [task, depth] == first
    ]


def _cell(
    family: str, task: str, norm: str, depth: int, training: Any, trial: int
) -> dict[str, Any]:
    return {
        "family": family,
        "task": task,
        "norm": norm,
        "depth": depth,
        **training,
        "trial": trial,
    }
