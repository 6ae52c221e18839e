"""Scales of trained networks, and sizes of the layers of untrained ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import LayerwiseBlueprint, Row, Rows, derive, stream

from ..shared.layerwise_training import train_layerwise
from .config import START, Config

EPS = 2.0**-52


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network and read its scales, or read layer sizes before training."""
    if cell["norm"] == START:
        return Rows(_sizes(config, cell["trial"]))
    return Rows(train_layerwise(config, cell, read_scales))


def read_scales(network: Any) -> list[Row]:
    """Return the magnitude of every layer's scale, and its sign."""
    scales = networks.layer_scales(network)
    return [
        {
            "quantity": "scale",
            "layer": layer,
            "value": float(abs(scale)),
            "signed": float(scale),
            "error": EPS * float(abs(scale)),
        }
        for layer, scale in enumerate(scales, start=1)
    ]


def _sizes(config: Config, trial: int) -> list[Row]:
    """Return sizes by layer, averaged over wide networks at their start."""
    by_layer = np.mean(
        [_sizes_of(config, trial, copy) for copy in range(config.copies)], axis=0
    )
    rows: list[Row] = []
    for layer, (square, deviation) in enumerate(by_layer, start=1):
        sizes = {"square": float(square), "deviation": float(deviation)}
        if layer > 1:
            sizes["increment"] = float(square - by_layer[layer - 2][0])
        rows += [
            {"quantity": q, "layer": layer, "value": v, "error": config.wide * EPS * v}
            for q, v in sizes.items()
        ]
    return rows


def _sizes_of(config: Config, trial: int, copy: int) -> list[tuple[float, float]]:
    """Pass standard normal inputs through a wide network at its start."""
    import torch

    n, seed = config.wide, derive(config.seed, "sizes", trial, copy)
    plan = LayerwiseBlueprint(inputs=n, width=n, depth=config.layers, classes=1)
    network = networks.build(plan, seed=seed)
    x = torch.tensor(stream(seed, "inputs").normal(size=(n, n)))
    sizes = []
    with torch.no_grad():
        for layer in network.layers:
            made: Any = layer.norm
            deviation = float(made.deviation(layer.weight(x).relu()))
            x = layer(x)
            sizes.append((float((x**2).mean()), deviation))
    return sizes
