"""The base of linear operators, plain matrices, and random vectors for them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError, Numbers, as_numbers

from ..passes.forecast import as_bytes


class Operator(ABC):
    """A linear map that is known by its products with vectors.

    Subclasses are final: they implement :meth:`matvec` and, unless symmetric,
    :meth:`rmatvec`, both on flat vectors of the operator's dtype and device. A product
    never changes the model and adds its cost to ``passes``.

    Attributes:
        shape: Rows and columns.
        dtype: Type of the products.
        device: Where vectors live.
        symmetric: Whether the operator equals its transpose.
        passes: Backward passes (or Jacobian products) spent so far.
        noise_norm: Bound on the rounding of the graph, once measured.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device
    symmetric: bool = False
    passes: int = 0
    noise_norm: float | None = None

    @property
    def at_once(self) -> int:
        """Number of products that are faster at once than one by one; 1 for none."""
        return 1

    @abstractmethod
    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply one flat vector from the right."""

    def matvecs(self, vectors: Tensor) -> Tensor:
        """Multiply many vectors, given as rows; several at once where that is faster.

        The result differs from single products (and ``operator @ block``) by rounding.

        Args:
            vectors: Shape (count, columns).

        Returns:
            The products as rows, shape (count, rows).
        """
        vectors = self._as_rows(vectors)
        if not len(vectors):
            return vectors.new_zeros(0, self.shape[0])
        with self.together():
            return torch.stack([self.matvec(vector).detach() for vector in vectors])

    def _as_rows(self, vectors: object) -> Tensor:
        """Return vectors as rows in the operator's type, or refuse them."""
        if isinstance(vectors, Tensor) and vectors.ndim == 2:
            if vectors.shape[1] == self.shape[1]:
                return vectors.to(dtype=self.dtype, device=self.device)
        shape = getattr(vectors, "shape", None)
        came = type(vectors).__name__ + (f" of shape {tuple(shape)}" if shape else "")
        raise MeasurementError(
            f"a {came} came, wanted are vectors as the rows of a tensor of shape "
            f"(count, {self.shape[1]}): pass torch.stack([…]) of them, or a block of "
            "columns to operator @ block"
        )

    def rmatvec(self, vector: Tensor) -> Tensor:
        """Multiply the transpose by one flat vector."""
        if self.symmetric:
            return self.matvec(vector)
        raise MeasurementError(
            f"{type(self).__name__} offers no product with its transpose"
        )

    def __matmul__(self, other: Tensor | np.ndarray) -> Any:
        """Multiply a vector (n,) or a block of columns (n, k); NumPy in, NumPy out."""
        if isinstance(other, np.ndarray):
            given = torch.as_tensor(other, dtype=self.dtype, device=self.device)
            return _to_numpy(self @ given)
        if other.ndim not in (1, 2) or other.shape[0] != self.shape[1]:
            raise MeasurementError(
                f"a block of shape {tuple(other.shape)} cannot follow an operator of "
                f"shape {self.shape}: pass ({self.shape[1]},) or ({self.shape[1]}, k)"
            )
        given = other.to(dtype=self.dtype, device=self.device)
        if given.ndim == 1:
            return self.matvec(given)
        if given.shape[1] == 0:
            return given.new_zeros(self.shape[0], 0)
        with self.together():
            columns = [self.matvec(column) for column in given.unbind(1)]
        return torch.stack(columns, dim=1)

    def together(self) -> AbstractContextManager[None]:
        """Prepare once for all products inside."""
        return nullcontext()

    def remade(self, change: Callable[[Any], Any]) -> "Operator | None":
        """Return the operator of changed inputs, None if there is no model.

        Args:
            change: Returns a changed copy of the model, a batch or a loss.
        """
        del change
        return None

    def remade_once(self, change: Callable[[Any], Any]) -> "Operator | None":
        """Return the same for a single product, which may take less memory."""
        return self.remade(change)

    @property
    def T(self) -> "Operator":
        """The transpose, sharing this operator's model."""
        return self if self.symmetric else Transposed(self)

    def dense(self, *, matrix_bytes: int = 4 * 2**30) -> np.ndarray:
        """Return the whole matrix in float64, column by column."""
        matrix_bytes = as_bytes("matrix_bytes", matrix_bytes)
        rows, columns = self.shape
        wanted = 8 * rows * columns
        if wanted > matrix_bytes:
            raise MeasurementError(
                f"the dense matrix of shape {self.shape} takes {wanted / 2**30:.3g} "
                f"GiB, allowed are {matrix_bytes / 2**30:.3g}: work with products, or "
                "raise matrix_bytes"
            )
        matrix = np.empty((rows, columns))
        with self.together():
            for j in range(columns):
                unit = torch.zeros(columns, dtype=self.dtype, device=self.device)
                unit[j] = 1
                product = self.matvec(unit)
                matrix[:, j] = product.detach().cpu().double().numpy()
        return matrix

    def to_scipy(self) -> Any:
        """Return the operator as ``scipy.sparse.linalg.LinearOperator``."""
        from scipy.sparse import linalg

        make: Any = linalg.LinearOperator  # its stub knows the base class only
        return make(
            shape=self.shape,
            matvec=lambda v: self @ np.asarray(v).reshape(-1),
            rmatvec=lambda v: self.T @ np.asarray(v).reshape(-1),
            dtype=_to_numpy(torch.empty(0, dtype=self.dtype)).dtype,
        )


def _to_numpy(tensor: Tensor) -> np.ndarray:
    """Return an array, in float32 if NumPy lacks the type."""
    given = tensor.detach().cpu()
    return (given.float() if given.dtype is torch.bfloat16 else given).numpy()


def _multiplied(matrix: Tensor, vector: Tensor) -> Tensor:
    """Multiply, in float32 if the CPU may lack products of the type."""
    if matrix.dtype is torch.bfloat16 and matrix.device.type == "cpu":
        return (matrix.float() @ vector.float()).to(matrix.dtype)
    return matrix @ vector


class Transposed(Operator):
    """The transpose of another operator."""

    def __init__(self, inner: Operator) -> None:
        self._inner = inner
        self.shape = (inner.shape[1], inner.shape[0])
        self.dtype, self.device = inner.dtype, inner.device

    def together(self) -> AbstractContextManager[None]:
        """Prepare the original once for all products within."""
        return self._inner.together()

    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply the transpose by a vector."""
        return self._inner.rmatvec(vector)

    def rmatvec(self, vector: Tensor) -> Tensor:
        """Multiply the original by a vector."""
        return self._inner.matvec(vector)

    @property
    def T(self) -> Operator:
        """The original."""
        return self._inner


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
        self.dtype, self.device = matrix.dtype, matrix.device
        self.symmetric = symmetric

    def dense(self, *, matrix_bytes: int = 4 * 2**30) -> np.ndarray:
        """Return the given matrix, of any size."""
        return self._matrix.detach().to("cpu", torch.float64).numpy()

    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        return _multiplied(self._matrix, vector)

    def rmatvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector into the transpose."""
        self.passes += 1
        return _multiplied(self._matrix.T, vector)


# Numbers drawn in float64 at a time, before they are rounded and moved: 8 MiB.
_DRAW = 2**20
# From _LONG numbers on, every _APART of them use another generator, so that threads can
# draw them: a billion from one generator take 15 seconds.
_LONG, _APART = 2**27, 2**24


def normal_vector(operator: Operator, generator: np.random.Generator) -> Tensor:
    """Return a standard normal vector for the operator.

    Up to 134 million numbers are those of one draw, the same on every device. More are
    the same for every number of threads; a GPU draws others.
    """
    vector = _empty(operator)
    if len(vector) < _LONG:
        _fill(vector, generator)
        return vector
    if vector.device.type == "cuda":
        return vector.normal_(generator=_gpu_generator(vector, generator))
    parts = vector.split(_APART)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(_fill, parts, generator.spawn(len(parts))))
    return vector


def sign_vector(operator: Operator, generator: np.random.Generator) -> Tensor:
    """Return random signs for the operator; a GPU draws a long vector itself."""
    vector = _empty(operator)
    if len(vector) >= _LONG and vector.device.type == "cuda":
        made = _gpu_generator(vector, generator)
        return vector.bernoulli_(0.5, generator=made).mul_(2).sub_(1)
    for part in vector.split(_DRAW):
        drawn = generator.integers(0, 2, len(part)) * 2.0 - 1.0
        part.copy_(torch.from_numpy(drawn).to(part.dtype))
    return vector


def _empty(operator: Operator) -> Tensor:
    size = operator.shape[1]
    return torch.empty(size, dtype=operator.dtype, device=operator.device)


def _gpu_generator(vector: Tensor, generator: np.random.Generator) -> torch.Generator:
    """Return a generator on a GPU, seeded by another."""
    seed = int(generator.integers(2**63 - 1))
    return torch.Generator(vector.device).manual_seed(seed)


def _fill(vector: Tensor, generator: np.random.Generator) -> None:
    for part in vector.split(_DRAW):
        drawn = torch.from_numpy(generator.standard_normal(len(part)))
        part.copy_(drawn.to(part.dtype))


def strides(
    count: int, operator: Operator, *, at_most: int | None = None
) -> Iterator[range]:
    """Yield ranges of vectors that are multiplied at once.

    Args:
        count: Number of vectors.
        operator: Multiplies them.
        at_most: Limit set by memory.
    """
    width = operator.at_once if at_most is None else min(operator.at_once, at_most)
    for start in range(0, count, max(1, width)):
        yield range(start, min(start + max(1, width), count))


def products(operator: Operator, vectors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Multiply vectors; a single one takes no additional memory."""
    if len(vectors) == 1:
        return [operator.matvec(vectors[0]).detach()]
    return operator.matvecs(torch.stack(list(vectors))).unbind()
