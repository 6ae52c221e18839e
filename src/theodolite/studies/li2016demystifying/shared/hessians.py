"""Random data, measured Hessians in the paper's order, and rows of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Blueprint, Row, column_major, stream

EPS = float(np.finfo(np.float64).eps)

# Activations by name of the setting; "general" has neither oddness nor unit slopes,
# and a pre-activation that is not 0 at 0, which assumption 3 allows.
SETTINGS: dict[str, dict[str, Any]] = {
    "linear": {},
    "tanh": {"pre": "tanh", "mid": "tanh", "post": "tanh"},
    "general": {"pre": "exp", "mid": "polynomial:1.5,1", "post": "polynomial:2,1"},
}


def random_data(
    trial: int, *, samples: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian inputs and targets of a trial."""
    x, y = stream(trial, "random_data").normal(size=(2, samples, width))
    return x, y


def at_zero(plan: Blueprint, device: str) -> Any:
    """Build a network with all weights zero."""
    return networks.build(plan.with_(init="zero"), seed=0, device=device)


def measured_hessian(
    network: Any, x: np.ndarray, y: np.ndarray, *, matrix_bytes: int = 4 * 2**30
) -> tuple[np.ndarray, Any]:
    """Measure a Hessian by double backward, in the paper's order of parameters.

    Returns:
        The reordered matrix, and the reading it is from.
    """
    import torch

    device = next(network.parameters()).device
    batch = tuple(torch.tensor(part, device=device) for part in (x, y))
    reading = instruments.hessian(
        network,
        batch,
        loss=instruments.HalfSquareLoss(),
        norm_mode="eval",
        matrix_bytes=matrix_bytes,
    )
    order = column_major([shape for _, shape in reading.layout])
    return reading.matrix[np.ix_(order, order)], reading


def named(
    found: Mapping[str, Any], errors: float | Mapping[str, float], **labels: Any
) -> list[Row]:
    """Return a row a quantity, with its error and the circumstances of all."""
    table = errors if isinstance(errors, Mapping) else {}
    default = None if isinstance(errors, Mapping) else errors
    return [
        {
            "quantity": name,
            **labels,
            "value": float(value),
            "error": table.get(name, default),
            "norm_mode": "eval",
        }
        for name, value in found.items()
    ]


def gap(theory: np.ndarray, measured: np.ndarray, scale: float) -> float:
    """Return the largest difference of entries as a fraction of a scale."""
    return float(np.abs(theory - measured).max()) / scale
