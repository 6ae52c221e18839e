"""Networks, training and rows that the studies of figures 2 and 9 share."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import data, networks, training
from theodolite.core import Cell, PreactivationBlueprint, Row, Rows, RunError

from .cifar_config import CifarConfig

if TYPE_CHECKING:
    import torch

QUANTITIES = ("test_error", "train_loss", "norm", "response")


def measure_cell(config: CifarConfig, cell: Cell) -> Rows:
    """Train one network; leave out the time it took."""
    (rows,) = train_cells(config, [cell])
    if rows[-1]["status"] == "failed":
        raise RunError(
            f"the network of depth {cell['depth']} with shortcut {cell['shortcut']} "
            f"could not be trained ({rows[-1]['note']}): check the device's memory, or "
            "pass --device cpu"
        )
    return Rows(row for row in rows if row["quantity"] != "seconds")


def plan_of(config: CifarConfig, cell: Cell) -> PreactivationBlueprint:
    """Return the blueprint of a cell's network."""
    return PreactivationBlueprint(
        depth=cell["depth"],
        shortcut=cell["shortcut"],
        width=config.width,
        stages=config.stages,
        channels=config.channels,
    )


def train_cells(
    config: CifarConfig,
    cells: Sequence[Cell],
    *,
    at_once: int = 4,
    limit_s: float = float("inf"),
    report: Callable[[int, Mapping[str, float]], None] | None = None,
    probe: Callable[[Any], dict[str, float]] | None = None,
) -> list[list[Row]]:
    """Train the networks of cells, several at a time; return rows of each, in order.

    A seed fixes weights, batches and crops, so that cells of one ``trial`` are pairs.
    ``probe`` reads a network after every epoch, its weights by default.
    """
    images = images_of(config.dataset, config.samples, config.device)
    recipe = training.Recipe(
        epochs=config.epochs,
        batch_size=config.batch_size,
        rate=config.rate,
        precision=config.precision,  # type: ignore[arg-type]
    )
    done = training.train_many(
        [
            partial(networks.build, plan_of(config, cell), seed=cell["trial"])
            for cell in cells
        ],
        images,
        recipe=recipe,
        seeds=[cell["trial"] for cell in cells],
        augment=_augmentation(config, images),
        probe=probe or read_weights,
        report=report,
        at_once=at_once,
        limit_s=limit_s,
    )
    return [_rows(result, config, len(images.test_labels)) for result in done]


def read_weights(model: Any) -> dict[str, float]:
    """Return the mean Frobenius norm of the units' convolutions, and all weights."""
    import torch

    norms = [
        layer.weight.detach().double() for layer in networks.unit_convolutions(model)
    ]
    norms = torch.stack([torch.linalg.vector_norm(weight) for weight in norms])
    count = sum(parameter.numel() for parameter in model.parameters())
    return {"norm": float(norms.mean()), "parameters": count}


def _rows(result: Any, config: CifarConfig, tested: int) -> list[Row]:
    """Return one row per quantity and epoch, each with how the run ended.

    Errors are those of one network; the claim's test adds the error over networks.
    """
    fate = {"status": result.status, "epochs": config.epochs}
    rows: list[Row] = []
    for reading in result.history:
        for name in QUANTITIES:
            if name in reading:
                value = float(reading[name])
                label = {"quantity": name, "epoch": int(reading["epoch"])}
                error = 2.0**-23 * value  # of single precision
                if name == "test_error":
                    error = float(np.sqrt(value * (1 - value) / tested))
                rows.append({**label, "value": value, "error": error, **fate})
    if result.history and "parameters" in result.history[0]:
        count = result.history[0]["parameters"]
        rows.append({"quantity": "parameters", "value": count, "error": 0.0, **fate})
    seconds = result.history[-1]["seconds"] if result.history else 0.0
    notes = {"graphed": result.graphed, "note": result.error}
    return [*rows, {"quantity": "seconds", "value": seconds, **notes, **fate}]


def _augmentation(config: CifarConfig, images: Any) -> Any:
    """Return random crops from an image with a border of the mean colour."""
    if not config.padding and not config.flip:
        return None
    shade = images.centre.reshape(1, -1, 1, 1).to(images.inputs.device)
    shade = shade.round().to(images.inputs.dtype)

    def augment(batch: "torch.Tensor", generator: "torch.Generator") -> "torch.Tensor":
        # One-byte integers wrap around, so adding undoes the subtraction exactly.
        moved = data.augment(
            batch - shade, generator=generator, padding=config.padding, flip=config.flip
        )
        return moved + shade

    return augment


@cache
def images_of(name: str, samples: int, device: str) -> Any:
    """Return a dataset's images on a device, with the statistics of its channels."""
    train, test = data.load(name), data.load(name, "test")
    kept = samples or len(train)
    pixels, labels = np.asarray(train.images)[:kept], train.labels[:kept]
    images = training.Images.of_pixels(
        pixels, labels, np.asarray(test.images), test.labels
    )
    return images.to(device)
