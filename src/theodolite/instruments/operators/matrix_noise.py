"""How far a matrix that was measured is from exact arithmetic, and from symmetry."""

import numpy as np
import torch
from torch import Tensor

from theodolite.instruments.operators.graph_noise import GraphNoise, graph_noise
from theodolite.instruments.operators.operator import MatrixOperator, Operator

# In float64 there is nothing finer to compare with: so many roundings of a row's norm
# are allowed for, by choice.
_ROUNDINGS = 32
# Asymmetry that so many roundings of the largest entry do not explain: something in
# the graph is coarser than the parameters are, or amplifies what is rounded.
_SUSPECT = 1e3


def matrix_noise(operator: Operator, matrix: np.ndarray) -> tuple[GraphNoise, bool]:
    """Return bounds on the error of a measured matrix, and whether it is symmetric.

    Parameters in less than float64, or asymmetry beyond what float64 explains, are
    looked into with a twin; asymmetry is refused only beyond what that shows.

    Args:
        operator: Where the matrix comes from.
        matrix: As measured, before it is symmetrised; its columns are products.
    """
    eps = torch.finfo(operator.dtype).eps
    scale = float(np.abs(matrix).max(initial=0.0))
    gap = float(np.abs(matrix - matrix.T).max(initial=0.0))
    suspect = gap > _SUSPECT * eps * scale and scale > eps
    found = None
    if operator.dtype != torch.float64 or suspect:
        found = graph_noise(operator, lambda v: _product(matrix, v))
    if found is None:
        found = _assumed(operator, matrix, gap, eps)
        symmetric = bool(gap <= np.sqrt(eps) * scale)
        # What is not symmetric, and less than a rounding of 1, is rounding throughout.
        if not symmetric and scale <= eps:
            return _all_of(matrix, found), True
        return found, symmetric
    explained = max(np.sqrt(eps) * scale, 4 * float(found.rows.max(initial=0.0)))
    return found, bool(gap <= explained or scale <= eps)


def _product(matrix: np.ndarray, vector: Tensor) -> Tensor:
    return torch.as_tensor(matrix @ vector.double().cpu().numpy())


def _assumed(
    operator: Operator, matrix: np.ndarray, gap: float, eps: float
) -> GraphNoise:
    """Bound the error by roundings of the rows, and by the asymmetry found."""
    # A matrix that is there already is rounded to its type, and no graph was walked.
    count = 1 if isinstance(operator, MatrixOperator) else _ROUNDINGS
    lengths = np.linalg.norm(matrix, axis=1)
    rows = count * eps * lengths + gap / 2 * np.sqrt(len(matrix))
    diagonal = np.abs(np.diagonal(matrix))
    trace = count * eps * float(diagonal.sum())
    return GraphNoise(rows, float(np.linalg.norm(rows)), trace)


def _all_of(matrix: np.ndarray, found: GraphNoise) -> GraphNoise:
    """Return errors that reach from every entry to zero, beside those found."""
    rows = found.rows + np.linalg.norm(matrix, axis=1)
    trace = found.trace + float(np.abs(np.diagonal(matrix)).sum())
    return GraphNoise(rows, float(np.linalg.norm(rows)), trace)
