"""Signals of built networks at the start, and of trained ones."""

from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import (
    Cell,
    PreactivationBlueprint,
    Row,
    Rows,
    RunError,
    named_rows,
)
from theodolite.data import load

from ..shared.cifar_training import images_of, train_cells
from .config import Config


def measure(config: Config, cell: Cell) -> Rows:
    """Send images through one network, as built or as trained."""
    return Rows((_start if cell["task"] == "start" else _trained)(config, cell))


def _start(config: Config, cell: Cell) -> list[Row]:
    """Return the output variance of a new network, and that at zero weights."""
    import torch

    images = load(config.dataset).images[: config.images]
    pixels = torch.tensor(np.array(images, dtype=np.float64))
    pixels = (pixels - pixels.mean()) / pixels.std(correction=0)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels.permute(0, 3, 1, 2)
    network = _new(config, cell, pixels.shape[1])
    entering, leaving = _variances(network, pixels.to(config.device))
    mode = {"norm_mode": "train"}
    rows = named_rows({"variance": leaving}, 1e-12 * leaving, **mode)
    if cell["kind"] == "plain":  # its output is 0 at zero weights
        return rows
    with torch.no_grad():
        for unit in network.units:
            for layer in unit.convolutions:
                layer.weight.zero_()
    entered, left = _variances(network, pixels.to(config.device))
    change = {"change_at_zero": abs(left / entered - 1)}
    at_he = abs(leaving / entering - 1)
    return rows + named_rows(change, 1e-12, at_he=at_he, **mode)


def _variances(network: Any, pixels: Any) -> tuple[float, float]:
    """Return the variance of the signal before the first unit and after the last."""
    import torch

    with torch.no_grad():
        signal = first = network.stem(pixels)
        for unit in network.units:
            signal = unit(signal)
    # The mean over weights is zero, so that the mean square is the variance.
    return float(first.square().mean()), float(signal.square().mean())


def _new(config: Config, cell: Cell, channels: int) -> Any:
    import torch

    plan = PreactivationBlueprint(
        depth=2 + 2 * cell["units"],
        shortcut=2,
        width=config.start_width,
        stages=1,
        channels=channels,
        skip=cell["kind"] != "plain",
    )
    network = networks.build(
        plan, seed=cell["trial"], dtype=torch.float64, device=config.device
    )
    if cell["kind"] != "normalised":
        units: Any = network.units
        for unit in units:
            unit.norms = torch.nn.ModuleList(torch.nn.Identity() for _ in unit.norms)
    return network


def _trained(config: Config, cell: Cell) -> list[Row]:
    """Train a network and return the responses of its units after every epoch."""
    images = images_of(config.dataset, config.samples, config.device)
    centre, scale = (
        part.reshape(1, -1, 1, 1).to(images.inputs.device)
        for part in (images.centre, images.scale)
    )
    batch = (images.inputs[: 4 * config.images].float() - centre) / scale

    def probe(model: Any) -> dict[str, float]:
        return {"response": float(np.mean(responses(model, batch)))}

    (rows,) = train_cells(config, [cell], probe=probe)
    if rows[-1]["status"] == "failed":
        raise RunError(
            f"the network of depth {cell['depth']} could not be trained "
            f"({rows[-1]['note']}): check the device's memory, or pass --device cpu"
        )
    kept = ("response", "test_error")
    return [row for row in rows if row["quantity"] in kept]


def responses(model: Any, batch: Any) -> list[float]:
    """Return the standard deviation of each branch's output, before the addition."""
    import torch

    deviations: list[float] = []

    def note(layer: Any, inputs: Any, output: Any) -> None:
        deviations.append(float(output.double().std()))

    with instruments.preserve(model), torch.no_grad():
        model.train()  # the batch's own statistics: running ones lag behind
        for unit in model.units:
            unit.convolutions[-1].register_forward_hook(note)
        model(batch)
    return deviations
