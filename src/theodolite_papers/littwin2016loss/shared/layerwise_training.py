"""Layerwise networks on mixtures of Gaussians, trained and read along the way."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theodolite import data, networks, training
from theodolite.core import Row, RunError

from .layerwise_config import LayerwiseConfig, TrainedConfig

# Takes a network; returns what was read of it.
Read = Callable[[Any], list[Row]]


def gaussians(config: LayerwiseConfig, split: str = "train") -> tuple[Any, Any]:
    """Return inputs and classes of the mixture that all trials share."""
    samples = data.load(
        "gaussians",
        split,
        n_samples=config.samples,
        n_classes=config.classes,
        width=config.inputs,
        separation=config.separation,
        seed=config.seed,
    )
    return np.array(samples.inputs), np.array(samples.labels)


def train_layerwise(
    config: LayerwiseConfig,
    cell: Mapping[str, Any],
    read: Read,
    *,
    init_scale: float = 1.0,
    optimizer: Any = None,
) -> list[Row]:
    """Train one network; return its readings and its error on new samples."""
    plan = config.plan(cell.get("norm", "none"), init_scale)
    network = networks.build(plan, seed=cell["trial"])
    rows = train_and_read(
        config, cell, network, gaussians(config), read=read, optimizer=optimizer
    )
    return [*rows, test_error(network, *gaussians(config, "test"))]


def train_and_read(
    config: TrainedConfig,
    cell: Mapping[str, Any],
    network: Any,
    samples: tuple[Any, Any],
    *,
    read: Read,
    optimizer: Any = None,
) -> list[Row]:
    """Train a classifier by plain SGD and read it and its loss along the way."""
    import torch
    from torch import nn

    with torch.no_grad():
        network.head.weight.mul_(cell["readout"])
    steps = config.reading_steps(cell["horizon"])
    some = [torch.as_tensor(part[:LOSS_SAMPLES]) for part in samples]

    def measure(snapshot: Any) -> list[Row]:
        rows = [train_loss(snapshot.model, *some), *read(snapshot.model)]
        return [{**row, "step": snapshot.step} for row in rows]

    run = training.train(
        network,
        samples,
        optimizer=optimizer or training.Descent(lr=cell["rate"]),
        steps=steps[-1],
        loss=nn.CrossEntropyLoss(),
        batch_size=config.batch_size,
        probes=[training.Probe("along", measure, training.AtSteps(steps))],
        record=training.AtSteps(steps),
        seed=cell["trial"],
    )
    if run.retired:
        raise RunError(
            f"a reading along training failed ({run.retired}): lower the learning rate "
            "if the network diverged"
        )
    return [
        {**row, "quantity": row["quantity"].removeprefix("along/")}
        for row in run.probe_rows
    ]


LOSS_SAMPLES = 1000


def train_loss(network: Any, inputs: Any, labels: Any) -> Row:
    """Return the loss on training samples, normalised as in training."""
    import torch
    from torch import nn

    twin = copy.deepcopy(network).train()
    with torch.no_grad():
        loss = float(nn.CrossEntropyLoss()(twin(inputs), labels))
    return {"quantity": "train_loss", "value": loss, "error": 1e-9 * loss}


def test_error(network: Any, inputs: np.ndarray, labels: np.ndarray) -> Row:
    """Return a trained network's error on held-out samples."""
    import torch

    network.eval()
    like = next(network.parameters())
    with torch.no_grad():
        scores = network(torch.as_tensor(inputs, dtype=like.dtype, device=like.device))
    wrong = float((scores.argmax(1).cpu().numpy() != labels).mean())
    error = float(np.sqrt(max(wrong * (1 - wrong), 1 / len(labels)) / len(labels)))
    return {"quantity": "test_error", "value": wrong, "error": error}
