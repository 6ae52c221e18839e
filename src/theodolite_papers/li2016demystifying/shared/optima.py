"""Optima of linear maps and networks, fitted to samples or made exact."""

import numpy as np

from theodolite.core import ShortcutBlueprint


def exact_optimum(
    plan: ShortcutBlueprint, weights: np.ndarray, best: np.ndarray
) -> tuple[np.ndarray, float]:
    """Move the last matrix of a linear network so that the whole map is the best one.

    The other matrices of the last unit, and the maps of the other units, must be
    invertible. Returns the weights, and the condition number of the inverted matrices.
    """
    n, eye = plan.shortcut, np.eye(plan.width)
    before = eye
    for start in range(0, plan.depth - n, n):
        inner = _product(weights[start : start + n], eye)
        before = (eye + inner if plan.skip else inner) @ before
    inner = _product(weights[plan.depth - n : -1], eye)
    wanted = best @ np.linalg.inv(before)
    last = (wanted - eye if plan.skip else wanted) @ np.linalg.inv(inner)
    condition = float(np.linalg.cond(before) * np.linalg.cond(inner))
    return np.concatenate([weights[:-1], last[None]]), condition


def _product(matrices: np.ndarray, eye: np.ndarray) -> np.ndarray:
    product = eye
    for matrix in matrices:
        product = matrix @ product
    return product


def least_loss(x: np.ndarray, y: np.ndarray) -> float:
    """Return half the mean squared residual of least squares.

    Example:
        >>> least_loss(np.array([[1.0], [1.0]]), np.array([[0.0], [2.0]]))
        0.5
    """
    fitted = np.linalg.lstsq(x, y, rcond=None)[0]
    return 0.5 * float(np.mean(np.sum((x @ fitted - y) ** 2, axis=1)))
