"""Measure weight norms in training without normalisation, and why they change."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows

from ..shared.layerwise_training import train_layerwise
from .config import Config

EPS = 2.0**-52


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network and return its weight norms during training."""
    made: list[Any] = []

    def optimizer(parameters: list[Any]) -> Any:
        made.append(_watched(parameters, cell["rate"]))
        return made[0]

    rows = train_layerwise(
        config,
        cell,
        lambda network: _read(network, made[0].moved),
        init_scale=cell["init_scale"],
        optimizer=optimizer,
    )
    return Rows(rows)


def _watched(parameters: list[Any], rate: float) -> Any:
    r"""Return SGD that adds up the two parts of every change of the squared norm.

    $\|w - \mu g\|^2 - \|w\|^2 = -2\mu\,w^T g + \mu^2 \|g\|^2$ over the weights of
    all layers, the readout left out.
    """
    import torch

    class Watched(torch.optim.SGD):
        def __init__(self) -> None:
            super().__init__(parameters, lr=rate)
            self.moved = np.zeros(2)

        def step(self, closure: Any = None) -> Any:
            with torch.no_grad():
                for weight in parameters[:-1]:
                    along = float((weight * weight.grad).sum())
                    square = float((weight.grad**2).sum())
                    self.moved += (-2 * rate * along, rate**2 * square)
            return super().step(closure)

    return Watched()


def _read(network: Any, moved: np.ndarray) -> list[Row]:
    """Return norms of all layers and of each, and the two parts of the change."""
    squares = [float((w.weight.weight.detach() ** 2).sum()) for w in network.layers]
    count = sum(w.weight.weight.numel() for w in network.layers)
    norm = float(np.sqrt(sum(squares)))
    # Sums of many thousand changes, each rounded.
    lost = 1e-12 * norm**2
    rows: list[Row] = [
        {"quantity": "norm", "value": norm, "error": 100 * EPS * norm},
        {"quantity": "size", "value": norm / count**0.5, "error": 100 * EPS},
        {"quantity": "radial", "value": float(moved[0]), "error": lost},
        {"quantity": "tangential", "value": float(moved[1]), "error": lost},
    ]
    for layer, square in enumerate(squares, start=1):
        value = float(np.sqrt(square))
        labels = {"quantity": "layer_norm", "layer": layer}
        rows.append({**labels, "value": value, "error": 100 * EPS * value})
    return rows
