"""Networks at zero, and measured Hessians in the paper's order."""

from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Row, ShortcutBlueprint, column_major

from .problems import EPS, gap


def at_zero(plan: ShortcutBlueprint, device: str) -> Any:
    """Build a network with all weights zero."""
    return networks.build(plan.with_(init="zero"), seed=0, device=device)


def measured_hessian(
    network: Any,
    x: np.ndarray,
    y: np.ndarray,
    *,
    params: list[str] | None = None,
    matrix_bytes: int = 4 * 2**30,
) -> tuple[np.ndarray, Any]:
    """Return a Hessian by double backward, in the paper's order, and its reading.

    Parameters that are not in ``params`` are constants. A matrix of more than
    ``matrix_bytes`` raises an error.
    """
    import torch

    device = next(network.parameters()).device
    batch = tuple(torch.tensor(part, device=device) for part in (x, y))
    reading = instruments.hessian(
        network,
        batch,
        loss=instruments.HalfSquareLoss(),
        norm_mode="eval",
        params=params,
        matrix_bytes=matrix_bytes,
    )
    order = column_major([shape for _, shape in reading.layout])
    return reading.matrix[np.ix_(order, order)], reading


def matrix_spectrum(matrix: np.ndarray) -> Any:
    """Return the spectrum of a symmetric matrix as instruments read it."""
    import torch

    operator = instruments.MatrixOperator(torch.from_numpy(matrix), symmetric=True)
    return instruments.spectrum(operator)


def gap_row(name: str, matrix: np.ndarray, measured: np.ndarray, reading: Any) -> Row:
    """Return how far a computed Hessian is from the measured one, as a row."""
    return {
        "quantity": name,
        "value": gap(matrix, measured, float(np.abs(measured).max())),
        "error": reading.asymmetry + EPS * len(measured),
        "norm_mode": str(reading.norm_mode),
        "method": reading.method,
    }
