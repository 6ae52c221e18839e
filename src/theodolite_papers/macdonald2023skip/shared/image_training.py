"""Train original and modified ResNets on the same batches, and keep their curves."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import data, networks, training
from theodolite.core import Cell, DataError, Row, Rows, RunError, derive

from .image_config import ImageConfig

if TYPE_CHECKING:
    import torch

# The published scripts test 1,000 images at a time.
_TEST_BATCH = 1000
Tell = Callable[[int, Mapping[str, float]], None]


def measure_cell(config: ImageConfig, cell: Cell) -> Rows:
    """Train one network."""
    (rows,) = train_cells(config, [cell])
    if rows[-1]["status"] == "failed":
        raise RunError(
            f"the network with {cell['added_identity']:g} I at rate {cell['rate']:g} "
            f"could not be trained ({rows[-1]['note']}): check the device's memory, or "
            "pass --device cpu"
        )
    return Rows({k: v for k, v in row.items() if k != "note"} for row in rows)


def train_cells(
    config: ImageConfig,
    cells: Sequence[Cell],
    *,
    at_once: int = 4,
    limit_s: float = float("inf"),
    report: Tell | None = None,
) -> list[list[Row]]:
    """Train the networks of cells, several at a time; return rows of each, in order.

    Trial and rate fix weights, batches and crops: original and modified are a pair,
    and pairs at two rates share nothing.
    """
    images = images_of(config.dataset, config.samples, config.device)
    _check_classes(config, images)
    seeds = [derive(cell["trial"], f"rate {cell['rate']:g}") for cell in cells]
    plans = [config.plan(cell["added_identity"]) for cell in cells]
    recipes = [recipe_of(config, cell["rate"]) for cell in cells]
    tests = filter(recipes[0].tests_at, range(config.epochs + 1))
    done = training.train_many(
        [
            partial(networks.build, plan, seed=seed)
            for plan, seed in zip(plans, seeds, strict=True)
        ],
        images,
        recipe=recipes,
        seeds=seeds,
        augment=_augmentation(config),
        probe=partial(batch_errors, config, images),
        probe_steps=[len(images.labels) // config.batch_size * n for n in tests],
        report=report,
        at_once=at_once,
        limit_s=limit_s,
    )
    return [
        rows_of(config, result.history, result.status, result.error) for result in done
    ]


def recipe_of(config: ImageConfig, rate: float) -> "training.Recipe":
    """Return the training recipe at one initial rate, which falls after each third."""
    return training.Recipe(
        epochs=config.epochs,
        batch_size=config.batch_size,
        rate=rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        nesterov=False,
        milestones=(1 / 3, 2 / 3),
        factor=config.factor,
        precision=config.precision,  # type: ignore[arg-type]
        test_every=config.test_every,
    )


def batch_errors(
    config: ImageConfig, images: "training.Images", model: Any
) -> dict[str, float]:
    """Return test errors with the statistics of each test batch, as published."""
    import torch

    model.train()
    kind, half = images.test_inputs.device.type, config.precision == "bf16"
    centre, scale = (t.reshape(1, -1, 1, 1) for t in (images.centre, images.scale))
    wrong = torch.zeros((), dtype=torch.int64, device=images.test_labels.device)
    with torch.no_grad(), torch.autocast(kind, torch.bfloat16, enabled=half):
        for inputs, labels in zip(
            images.test_inputs.split(_TEST_BATCH),
            images.test_labels.split(_TEST_BATCH),
            strict=True,
        ):
            scores = model((inputs.float() - centre) / scale)
            wrong += (scores.argmax(1) != labels).sum()
    count = sum(parameter.numel() for parameter in model.parameters())
    share = int(wrong) / len(images.test_labels)
    return {"test_error_batch": share, "parameters": count}


def rows_of(
    config: ImageConfig,
    history: Sequence[Mapping[str, float]],
    status: str,
    note: str = "",
) -> list[Row]:
    """Return one row per quantity and epoch, and a last row on how far the run came.

    Errors are rounding errors only: all test images are used.
    """
    fate = {
        "dataset": config.dataset,
        "classes": config.classes,
        "epochs": config.epochs,
        "status": status,
    }
    rows: list[Row] = []
    for reading in history:
        for name in ("train_loss", "test_error", "test_error_batch"):
            if name in reading:
                value = float(reading[name])
                error = 2.0**-23 * value if name == "train_loss" else 0.0
                label = {"quantity": name, "epoch": int(reading["epoch"])}
                rows.append({**label, "value": value, "error": error, **fate})
    if history and "parameters" in history[0]:
        count = int(history[0]["parameters"])
        rows.append({"quantity": "parameters", "value": count, "error": 0.0, **fate})
    reached = int(history[-1]["epoch"]) if history else 0
    last = {"quantity": "reached", "value": reached, "error": 0.0, **fate}
    return [*rows, {**last, "note": note}]


def _augmentation(config: ImageConfig) -> Any:
    """Return random crops from an image with a black border, and mirror images."""
    if not config.padding and not config.flip:
        return None

    def augment(batch: "torch.Tensor", generator: "torch.Generator") -> "torch.Tensor":
        return data.augment(
            batch, generator=generator, padding=config.padding, flip=config.flip
        )

    return augment


def _check_classes(config: ImageConfig, images: "training.Images") -> None:
    classes = 1 + int(max(images.labels.max(), images.test_labels.max()))
    if classes > config.classes or images.inputs.shape[1] != config.channels:
        raise DataError(
            f"{config.dataset} has {classes} classes and {images.inputs.shape[1]} "
            f"channels, and these networks are for {config.classes} classes and "
            f"{config.channels} channels: pass the images that the table is of"
        )


@cache
def images_of(name: str, samples: int, device: str) -> "training.Images":
    """Return a dataset's images on a device, with the statistics of its channels."""
    train, test = data.load(name), data.load(name, "test")
    kept = samples or len(train)
    pixels, labels = np.asarray(train.images)[:kept], train.labels[:kept]
    images = training.Images.of_pixels(
        pixels, labels, np.asarray(test.images), test.labels
    )
    return images.to(device)
