"""Networks of Eq 3 in torch, and digits and labels against assumptions 1 and 2."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint, named_rows

from ..shared.whitened import whitened
from .config import Config

Propagate = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def torch_network(
    first: np.ndarray, second: np.ndarray, bias: np.ndarray, device: str
) -> Any:
    """Build the network of Eq 3 with given weights."""
    plan = ShortcutBlueprint(
        width=first.shape[1], depth=2 * len(first), mid="relu", bias=True, init="zero"
    )
    network = networks.build(plan, seed=0, device=device)
    for unit, *parts in zip(network.units, first, second, bias, strict=True):
        _load(unit, *parts)
    return network


def _load(unit: Any, first: np.ndarray, second: np.ndarray, bias: np.ndarray) -> None:
    import torch

    layers = unit.layers
    with torch.no_grad():
        layers[0].weight.copy_(torch.from_numpy(first))
        layers[1].weight.copy_(torch.from_numpy(second))
        layers[0].bias.copy_(torch.from_numpy(bias))


def outputs(network: Any, x: np.ndarray) -> np.ndarray:
    """Run a network on samples."""
    import torch

    device = next(network.parameters()).device
    with torch.no_grad():
        return network(torch.tensor(x, device=device)).cpu().numpy()


def run_chain(
    first: np.ndarray, second: np.ndarray, bias: np.ndarray, x: np.ndarray, device: str
) -> np.ndarray:
    """Run many units through one torch unit, which computes the same sums."""
    step = torch_propagate(x.shape[1], device, [])
    for unit in zip(first, second, bias, strict=True):
        x = step(x, *unit)
    return x


def torch_propagate(width: int, device: str, seen: list[np.ndarray]) -> Propagate:
    """Return torch's step through a unit, which records the output samples."""
    shape = (1, width, width)
    single = torch_network(
        np.zeros(shape), np.zeros(shape), np.zeros((1, width)), device
    )

    def propagate(
        x: np.ndarray, first: np.ndarray, second: np.ndarray, bias: np.ndarray
    ) -> np.ndarray:
        _load(single.units[0], first, second, bias)
        seen.append(outputs(single, x))
        return seen[-1]

    return propagate


def measure(config: Config, cell: Cell) -> Rows:
    """Measure norms and labels of whitened digits; ``combine`` does the other tasks."""
    return Rows(_digits(config) if cell["task"] == "labels" else ())


def _digits(config: Config) -> list[Row]:
    x, y = whitened(config.dataset, 10)
    norms = np.linalg.norm(x, axis=1)
    chosen = y[: config.samples]
    apart = np.linalg.norm(chosen[:, None] - chosen, axis=2)
    # Labels are whole numbers: their distances and counts are exact.
    labels = {
        "label_distance": apart[~np.eye(len(chosen), dtype=bool)].min(),
        "distinct_labels": len(np.unique(y, axis=0)),
        "digits": len(y),
    }
    ends = {"norm_least": norms.min(), "norm_most": norms.max()}
    return named_rows(labels, 0.0) + named_rows(ends, 1e-12)
