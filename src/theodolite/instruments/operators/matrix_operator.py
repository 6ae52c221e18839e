"""Given matrices and the identity as operators."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError, Numbers, as_numbers

from .operator import Operator


def _multiplied(matrix: Tensor, vector: Tensor) -> Tensor:
    """Multiply, in float32 if the CPU may lack products of the type."""
    if matrix.dtype is torch.bfloat16 and matrix.device.type == "cpu":
        return (matrix.float() @ vector.float()).to(matrix.dtype)
    return matrix @ vector


class MatrixOperator(Operator):
    """A given matrix as an operator, for tests and small blocks.

    Floating tensors keep their type; other real numbers, also in arrays and lists, are
    taken in float64.

    Example:
        >>> operator = MatrixOperator(torch.eye(2) * 3)
        >>> operator @ torch.tensor([1.0, 2.0])
        tensor([3., 6.])
    """

    def __init__(self, matrix: Tensor | Numbers, *, symmetric: bool = False) -> None:
        if not (isinstance(matrix, Tensor) and matrix.is_floating_point()):
            given = (
                matrix.detach().cpu().numpy() if isinstance(matrix, Tensor) else matrix
            )
            matrix = torch.from_numpy(
                as_numbers(
                    "the matrix",
                    given,
                    "rows",
                    "columns",
                    finite=False,
                    error=MeasurementError,
                ).copy()
            )
        if matrix.ndim != 2:
            raise MeasurementError(
                f"the matrix has {matrix.ndim} axes, wanted are rows and columns: pass "
                "a square array, such as torch.eye(3)"
            )
        self._matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])
        self.torch_dtype, self.device = matrix.dtype, matrix.device
        self.symmetric = symmetric

    def dense(self, *, matrix_bytes: int = 4 * 2**30) -> np.ndarray:
        """Return the given matrix, of any size."""
        return self._matrix.detach().to("cpu", torch.float64).numpy()

    def product(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        return _multiplied(self._matrix, vector)

    def transposed_product(self, vector: Tensor) -> Tensor:
        """Multiply one vector into the transpose."""
        self.passes += 1
        return _multiplied(self._matrix.T, vector)

    def converted(self, dtype: torch.dtype) -> "MatrixOperator":
        """Return the same matrix in another type."""
        return MatrixOperator(self._matrix.to(dtype), symmetric=self.symmetric)


class Identity(Operator):
    """The identity on the vectors of another operator, as ``H + 0.1 * Identity(H)``.

    Args:
        like: A square operator.

    Example:
        >>> matrix = MatrixOperator(torch.eye(2) * 3, symmetric=True)
        >>> (matrix + 0.5 * Identity(matrix)).dense()
        array([[3.5, 0. ],
               [0. , 3.5]])
    """

    symmetric = True
    title = "identity"

    def __init__(self, like: Operator) -> None:
        if like.shape[0] != like.shape[1] or like.layout != like.row_layout:
            raise MeasurementError(
                f"the identity of an operator of shape {like.shape} has no one order: "
                "pass a square operator, whose rows are its columns"
            )
        self.shape, self.layout = like.shape, like.layout
        self.torch_dtype, self.device = like.torch_dtype, like.device

    def product(self, vector: Tensor) -> Tensor:
        """Return a copy of the vector."""
        return vector.clone()

    def converted(self, dtype: torch.dtype) -> "Identity":
        """Return the identity in another type."""
        other = Identity(self)
        other.torch_dtype = dtype
        return other
