r"""Orders of parameters, and the matrix that turns one into another.

The closed forms order the entries of each matrix column by column, as *Demystifying
ResNet* does (definition 5); torch flattens row by row.
"""

import numpy as np

from theodolite.core import as_whole, column_major

__all__ = ["column_major", "commutation"]


def commutation(width: int) -> np.ndarray:
    r"""Return $K$ with $K\,\mathrm{vec}(U) = \mathrm{vec}(U^\top)$.

    It is symmetric and orthogonal; the paper's $P$ of Eq 24.

    Assumes: square matrices and column-major vec.

    Example:
        >>> commutation(2) @ np.array([1, 2, 3, 4])
        array([1., 3., 2., 4.])
    """
    width = as_whole("width", width, 1)
    matrix = np.zeros((width * width, width * width))
    index = np.arange(width * width).reshape(width, width)
    matrix[index.ravel(), index.T.ravel()] = 1.0
    return matrix
