r"""Orders of parameters, and the matrix that turns one into another.

The closed forms order the entries of each matrix column by column, as *Demystifying
ResNet* does (definition 5); torch flattens row by row.
"""

import math
from collections.abc import Sequence

import numpy as np

from theodolite.core import as_whole


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


def column_major(shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the permutation from row-major parameters to the paper's order.

    ``matrix[np.ix_(order, order)]`` reorders a Hessian measured on a module whose
    parameters have these shapes.

    Assumes: parameters listed layer by layer, as the network applies them.

    Example:
        >>> column_major([(2, 2), (2,)])
        array([0, 2, 1, 3, 4, 5])
    """
    parts, start = [], 0
    for shape in shapes:
        shape = tuple(as_whole("size", side, 0) for side in shape)
        size = math.prod(shape)
        parts.append(start + np.arange(size).reshape(shape).ravel(order="F"))
        start += size
    return np.concatenate(parts) if parts else np.zeros(0, dtype=int)
