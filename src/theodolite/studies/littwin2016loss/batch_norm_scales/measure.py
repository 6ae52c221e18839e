"""Scales of trained networks, and sizes of the layers of untrained ones."""

from collections.abc import Mapping
from typing import Any

from theodolite import networks
from theodolite.core import LayerwiseBlueprint, Row, Rows, stream
from theodolite.studies.littwin2016loss.batch_norm_scales.config import START, Config
from theodolite.studies.littwin2016loss.shared.layerwise_training import (
    train_layerwise,
)

EPS = 2.0**-52


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network and read its scales, or look at one at its start."""
    if cell["norm"] == START:
        return Rows(_sizes(config, cell["trial"]))
    return Rows(train_layerwise(config, cell["norm"], cell["trial"], read_scales))


def read_scales(network: Any) -> list[Row]:
    """Return the magnitude of every layer's scale, and its sign."""
    found = networks.layer_scales(network)
    return [
        {
            "quantity": "scale",
            "layer": layer,
            "value": float(abs(scale)),
            "signed": float(scale),
            "error": EPS * float(abs(scale)),
        }
        for layer, scale in enumerate(found, start=1)
    ]


def _sizes(config: Config, trial: int) -> list[Row]:
    """Pass standard normal inputs through a wide network at its start."""
    import torch

    n = config.wide
    plan = LayerwiseBlueprint(inputs=n, width=n, depth=config.layers, classes=1)
    network = networks.build(plan, seed=trial)
    x = torch.tensor(stream(config.seed, "sizes", trial).normal(size=(n, n)))
    rows: list[Row] = []
    before = 0.0
    with torch.no_grad():
        for number, layer in enumerate(network.layers, start=1):
            made: Any = layer.norm
            deviation = made.deviation(layer.weight(x).relu())
            x = layer(x)
            square = float((x**2).mean())
            found = {"square": square, "deviation": float(deviation)}
            if number > 1:
                found["increment"] = square - before
            before = square
            rows += [
                {"quantity": q, "layer": number, "value": v, "error": n * EPS * v}
                for q, v in found.items()
            ]
    return rows
