"""Train pre-activation networks on images, several at a time on one device."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from theodolite import data, networks, training
from theodolite.core import Row, Rows, RunError, stream

from . import measure_ensemble as ensembles
from .config import EXEMPT, Config

Cell = Mapping[str, Any]
ERROR = "_error"


def measure_images(
    config: Config,
    cells: Sequence[Cell],
    *,
    at_once: int = 4,
    limit_s: float = float("inf"),
) -> list[Rows]:
    """Train the networks of cells of one task; return rows of each, in order.

    A seed fixes weights and batches, so that cells of one ``trial`` are pairs. After
    ``limit_s`` seconds all unfinished runs are stopped.
    """
    task = cells[0]["task"]
    images = images_of(task, config.image_samples, config.device)
    steps = config.image_reading_steps(len(images.labels))
    recipes = [
        training.Recipe(
            epochs=config.epochs,
            batch_size=config.image_batch,
            rate=cell["rate"],
            decay_norms=cell["norm"] != EXEMPT,
            precision=config.precision,  # type: ignore[arg-type]
        )
        for cell in cells
    ]
    made: dict[int, Any] = {}

    def build(place: int) -> Any:
        cell = cells[place]
        plan = config.image_plan(cell, images.inputs.shape[1])
        made[place] = networks.build(plan, seed=cell["trial"])
        made[place].head.weight.data *= cell["readout"]
        made[place].trial = cell["trial"]
        return ensembles.remember_sizes(made[place])

    done = training.train_many(
        [partial(build, place) for place in range(len(cells))],
        images,
        recipe=recipes,
        seeds=[cell["trial"] for cell in cells],
        probe=partial(_read, config, images),
        probe_steps=steps,
        at_once=at_once,
        limit_s=limit_s,
    )
    tables = []
    for place, (cell, run) in enumerate(zip(cells, done, strict=True)):
        rows = _result(cell, run)
        if run.status == "finished":
            rows = rows + _back(config, images, made[place], steps)
        tables.append(rows)
    return tables


def _back(
    config: Config, images: Any, network: Any, steps: tuple[int, ...]
) -> list[Row]:
    """Return readings of a trained network whose scales are reset to their start."""
    probe = _probe(config, images, network.trial)
    depths = ensembles.depth_alone(ensembles.reset(network), *probe, config.probes)
    last = {"step": steps[-1]}
    return [
        {"quantity": f"reset_{name}", "value": value, "error": error, **last}
        for name, (value, error) in depths.items()
    ]


def _result(cell: Cell, run: Any) -> Rows:
    if run.status == "failed" or run.retired:
        raise RunError(
            f"the network of depth {cell['depth']} with norm {cell['norm']} could not "
            f"be followed ({run.error or run.retired}): check the device's memory, or "
            "pass --device cpu"
        )
    fate = {"quantity": "finished", "value": float(run.status == "finished")}
    return Rows([*_rows(run.history), {**fate, "error": 0.0}])


def _rows(history: Sequence[Mapping[str, float]]) -> list[Row]:
    """Return the numbers of readings at the requested steps."""
    rows: list[Row] = []
    for reading in history:
        if "output_depth" not in reading:
            continue
        labels = {"step": int(reading["step"])}
        for name in (n.removesuffix(ERROR) for n in reading if n.endswith(ERROR)):
            if name in reading:
                number = {"value": reading[name], "error": reading[name + ERROR]}
                rows.append({"quantity": name, **labels, **number})
        loss = reading["test_loss"]
        rows.append(
            {"quantity": "test_loss", **labels, "value": loss, "error": 1e-6 * loss}
        )
    return rows


def _read(config: Config, images: Any, network: Any) -> dict[str, float]:
    """Return all quantities that are tracked during training, as plain numbers."""
    probe = _probe(config, images, network.trial)
    numbers = ensembles.ensemble(network, *probe, config.probes)
    numbers["scale"] = ensembles.scale_of(network), 1e-6
    flat = {name: value for name, (value, _) in numbers.items()}
    return flat | {name + ERROR: error for name, (_, error) in numbers.items()}


def _probe(config: Config, images: Any, trial: int) -> tuple[Any, Any]:
    """Return the batch whose statistics norm layers use while a network is read."""
    order = stream(config.seed, "probe", trial).permutation(len(images.labels))
    chosen = order[: config.image_batch].tolist()
    batch = images.inputs[chosen].double()
    centre, scale = (
        part.to(batch).reshape(1, -1, 1, 1) for part in (images.centre, images.scale)
    )
    return (batch - centre) / scale, images.labels[chosen]


@cache
def images_of(name: str, samples: int, device: str) -> Any:
    """Return a dataset's images on a device, with the statistics of its channels."""
    import torch

    tensors = []
    for split in ("train", "test"):
        loaded = data.load(name, split)
        pixels = np.array(loaded.images)
        pixels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
        if pixels.dtype != np.uint8:
            pixels = np.round(255 * pixels).astype(np.uint8)
        kept = samples if samples and split == "train" else len(pixels)
        tensors += [torch.tensor(pixels[:kept]), torch.tensor(loaded.labels[:kept])]
    channels = tensors[0].transpose(0, 1).flatten(1).double()
    centre, scale = channels.mean(1).float(), channels.std(1).float()
    images = training.Images(
        *tensors[:2],
        test_inputs=tensors[2],
        test_labels=tensors[3],
        centre=centre,
        scale=scale,
    )
    return images.to(device)
