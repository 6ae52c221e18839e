"""Layerwise networks on mixtures of Gaussians, trained and read along the way."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite import data, networks, training
from theodolite.core import Row, RunError

from .layerwise_config import LayerwiseConfig

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
    norm: str,
    trial: int,
    read: Read,
    *,
    init_scale: float = 1.0,
    optimizer: Any = None,
) -> list[Row]:
    """Train one network; return its readings and its error on new samples."""
    network = networks.build(config.plan(norm, init_scale), seed=trial)
    rows = train_and_read(
        network,
        gaussians(config),
        steps=config.reading_steps,
        rate=config.rate,
        batch_size=config.batch_size,
        seed=trial,
        read=read,
        optimizer=optimizer,
    )
    return [*rows, test_error(network, *gaussians(config, "test"))]


def train_and_read(
    network: Any,
    samples: tuple[Any, Any],
    *,
    steps: tuple[int, ...],
    rate: float,
    batch_size: int,
    seed: int,
    read: Read,
    optimizer: Any = None,
) -> list[Row]:
    """Train a classifier by plain SGD and read it at the given steps."""
    from torch import nn

    stages = {step: stage for stage, step in enumerate(steps)}

    def measure(snapshot: Any) -> list[Row]:
        labels = {"step": snapshot.step, "stage": stages[snapshot.step]}
        return [{**row, **labels} for row in read(snapshot.model)]

    run = training.train(
        network,
        samples,
        optimizer=optimizer or training.Descent(lr=rate),
        steps=steps[-1],
        loss=nn.CrossEntropyLoss(),
        batch_size=batch_size,
        probes=[training.Probe("along", measure, training.AtSteps(steps))],
        record=training.AtSteps(steps),
        seed=seed,
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
