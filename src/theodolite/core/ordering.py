"""The order of parameters that closed forms use, against that of torch."""

import math
from collections.abc import Sequence

import numpy as np

from theodolite.core.arrays import as_whole


def column_major(shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the permutation from row-major parameters to the paper's order.

    ``matrix[np.ix_(order, order)]`` reorders a Hessian measured on a module whose
    parameters have these shapes.

    Closed forms take the entries of each matrix column by column, torch row by row;
    parameters are listed layer by layer, as the network applies them.

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
