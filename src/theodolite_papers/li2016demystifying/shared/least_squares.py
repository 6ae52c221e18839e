"""The least loss of any linear map, fitted to the samples themselves."""

import numpy as np


def least_loss(x: np.ndarray, y: np.ndarray) -> float:
    """Return half the mean squared distance that least squares leaves.

    Example:
        >>> least_loss(np.array([[1.0], [1.0]]), np.array([[0.0], [2.0]]))
        0.5
    """
    fitted = np.linalg.lstsq(x, y, rcond=None)[0]
    return 0.5 * float(np.mean(np.sum((x @ fitted - y) ** 2, axis=1)))
