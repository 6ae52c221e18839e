"""The base of linear operators."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError

from ..differentiate.derivatives import Layout, split
from ..passes.forecast import as_bytes

Kind = Mapping[str, Tensor] | Sequence[Tensor]


class Operator(ABC):
    """A linear map that is known by its products with vectors.

    ``@`` multiplies vectors and blocks of columns, as arrays, tensors, or lists and
    dicts of tensors in the shapes of the parameters, and returns the same kind.
    Operators are scaled, added, composed (``@``), transposed (``.T``), cut into blocks
    (``operator[rows, columns]``) and inverted (``inverse()``). SciPy takes one wherever
    it takes a ``LinearOperator``.

    Subclasses are final: they implement :meth:`product` and, unless symmetric,
    :meth:`transposed_product`, both on flat vectors of the operator's type and device.
    A product never changes the model and adds its cost to ``passes``.

    Attributes:
        shape: Rows and columns.
        torch_dtype: Type of the products.
        device: Where vectors live.
        symmetric: Whether the operator equals its transpose.
        layout: Names and shapes of the parameters along the columns, empty for others.
        passes: Backward passes (or Jacobian products) spent so far.
        noise_norm: Bound on the rounding of the graph, once measured.
        noise_at: Value of ``changes`` when it was measured.
        changes: A new value after each change of the model that a product met.
        title: Name of the matrix, for methods of readings; empty for a plain matrix.
        cancels: Whether products are sums of larger terms, so that their rounding has
            to be measured in float64 too.
        inexact: Whether products are solutions up to a residual.
        checked: Whether custom derivatives of its model were checked.
        parts: The operators that this one combines; none if it has its own products.
    """

    shape: tuple[int, int]
    torch_dtype: torch.dtype
    device: torch.device
    symmetric: bool = False
    layout: Layout = ()
    passes: int = 0
    noise_norm: float | None = None
    noise_at: Any = 0
    changes: Any = 0
    title: str = ""
    cancels: bool = False
    inexact: bool = False
    checked: bool = False
    parts: "Sequence[Operator]" = ()
    # NumPy leaves `array @ operator` and `number * operator` to the methods below.
    __array_ufunc__ = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the products, as SciPy wants it; float32 for bfloat16."""
        return _to_numpy(torch.empty(0, dtype=self.torch_dtype, device="cpu")).dtype

    @property
    def row_layout(self) -> Layout:
        """Names and shapes of the parameters along the rows, empty for others."""
        return self.layout if self.symmetric else ()

    @property
    def names(self) -> list[str]:
        """Names of the parameters along the columns, in order."""
        return [name for name, _ in self.layout]

    @property
    def at_once(self) -> int:
        """Number of products that are faster at once than one by one; 1 for none."""
        return 1

    @abstractmethod
    def product(self, vector: Tensor) -> Tensor:
        """Multiply one flat tensor from the right."""

    def transposed_product(self, vector: Tensor) -> Tensor:
        """Multiply the transpose by one flat tensor."""
        if self.symmetric:
            return self.product(vector)
        raise MeasurementError(
            f"{type(self).__name__} offers no product with its transpose"
        )

    def matvec(self, vector: Any) -> Any:
        """Multiply one vector; a flat tensor must have the operator's type."""
        return self.product(vector) if isinstance(vector, Tensor) else self @ vector

    def rmatvec(self, vector: Any) -> Any:
        """Multiply the transpose by one vector."""
        given = isinstance(vector, Tensor)
        return self.transposed_product(vector) if given else self.T @ vector

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
            return torch.stack([self.product(vector).detach() for vector in vectors])

    def _as_rows(self, vectors: object) -> Tensor:
        """Return vectors as rows in the operator's type, or refuse them."""
        if isinstance(vectors, Tensor) and vectors.ndim == 2:
            if vectors.shape[1] == self.shape[1]:
                return vectors.to(dtype=self.torch_dtype, device=self.device)
        shape = getattr(vectors, "shape", None)
        came = type(vectors).__name__ + (f" of shape {tuple(shape)}" if shape else "")
        raise MeasurementError(
            f"a {came} came, wanted are vectors as the rows of a tensor of shape "
            f"(count, {self.shape[1]}): pass torch.stack([…]) of them, or a block of "
            "columns to operator @ block"
        )

    def __matmul__(self, other: Any) -> Any:
        """Multiply a vector (n,), columns (n, k), parts in the shapes of parameters.

        What comes out is of the kind that came in. Another operator is composed.
        """
        if isinstance(other, Operator):
            return _algebra().composed(self, other)
        if isinstance(other, np.ndarray):
            given = torch.as_tensor(other, dtype=self.torch_dtype, device=self.device)
            return _to_numpy(self @ given)
        if isinstance(other, Mapping | list | tuple):
            return self._on_parts(other)
        if not isinstance(other, Tensor):
            return NotImplemented
        if other.ndim not in (1, 2) or other.shape[0] != self.shape[1]:
            raise MeasurementError(
                f"a block of shape {tuple(other.shape)} cannot follow an operator of "
                f"shape {self.shape}: pass ({self.shape[1]},) or ({self.shape[1]}, k)"
            )
        given = other.to(dtype=self.torch_dtype, device=self.device)
        if given.ndim == 1:
            return self.product(given)
        if given.shape[1] == 0:
            return given.new_zeros(self.shape[0], 0)
        with self.together():
            columns = [self.product(column) for column in given.unbind(1)]
        return torch.stack(columns, dim=1)

    def _on_parts(self, parts: Kind) -> Any:
        """Multiply tensors in the shapes of the parameters, or columns of them."""
        from .block import join

        product = self @ join(self.layout, parts, self.torch_dtype, self.device)
        if not self.row_layout:
            return product  # outputs have no names
        named = split(self.row_layout, product)
        return named if isinstance(parts, Mapping) else type(parts)(named.values())  # pyright: ignore[reportCallIssue]

    def __rmatmul__(self, other: Any) -> Any:
        """Multiply a row vector (n,) or rows (k, n), as arrays or tensors."""
        if not isinstance(other, np.ndarray | Tensor):
            return NotImplemented
        return (self.T @ other.T).T if other.ndim == 2 else self.T @ other

    def __mul__(self, factor: Any) -> "Operator":
        """Return a multiple."""
        return _algebra().scaled(self, factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "Operator":
        """Return the operator divided by a number."""
        return _algebra().divided(self, divisor)

    def __neg__(self) -> "Operator":
        """Return the negative."""
        return _algebra().scaled(self, -1.0)

    def __add__(self, other: Any) -> "Operator":
        """Return the sum with another operator on the same parameters."""
        return _algebra().added(self, other, 1.0)

    def __sub__(self, other: Any) -> "Operator":
        """Return the difference from another operator on the same parameters."""
        return _algebra().added(self, other, -1.0)

    def __radd__(self, other: Any) -> "Operator":
        """Refuse what is no operator; ``sum`` of operators starts from 0."""
        zero = isinstance(other, int) and other == 0
        return self if zero else _algebra().added(self, other, 1.0)

    def __getitem__(self, key: Any) -> "Operator":
        """Return the block of some parameters: ``operator[rows, columns]``.

        Each is the name of a parameter, a list of names, or ``:`` for all. A single
        one stands for both, which is a diagonal block. Blocks share the graphs.
        """
        from .block import block_of

        return block_of(self, key)

    @property
    def blocks(self) -> dict[str, "Operator"]:
        """A diagonal block per submodule with parameters; of a Jacobian, columns."""
        owners: dict[str, list[str]] = {}
        for name in self.names:
            owners.setdefault(name.rpartition(".")[0], []).append(name)
        square = bool(self.row_layout)
        return {o: self[n] if square else self[:, n] for o, n in owners.items()}

    def _block_matvec(
        self,
        rows: Sequence[int] | None,
        columns: Sequence[int] | None,
        vector: Tensor,
    ) -> Tensor:
        """Multiply by the block of parameters with some indices; None for all."""
        from .block import embedded, extracted

        if columns is not None:
            vector = embedded(self.layout, columns, vector)
        product = self.product(vector)
        return product if rows is None else extracted(self.row_layout, rows, product)

    def inverse(self, *, tol: float | None = None, max_matvecs: int = 1000) -> Any:
        """Return the :class:`Inverse`, whose products are solved to a residual.

        Args:
            tol: Residual to reach, relative to the vector: 1e-10 in float64 and 1e-5
                below by default.
            max_matvecs: Most products per solution.
        """
        from .inverse import Inverse

        return Inverse(self, tol=tol, max_matvecs=max_matvecs)

    def together(self) -> AbstractContextManager[None]:
        """Prepare once for all products inside."""
        return nullcontext()

    @property
    def source(self) -> Any:
        """The operator on a model's parameters that products use, None for none."""
        return None

    def with_source(self, source: "Operator") -> "Operator":
        """Return the operator that uses another source of the same kind."""
        return source

    def split_once(self) -> tuple[int, int] | None:
        """Return samples per part and bytes of graphs of a single product in float64.

        None where a product in parts saves nothing or would change it.
        """
        return None

    def rebuilt(self, parts: "Sequence[Operator]") -> "Operator":
        """Return the same combination of other operators."""
        del parts
        return self

    def key(self, *, flipped: bool = False) -> Any:
        """Return how the operator is written, or its transpose, to compare the two."""
        return id(self), flipped and not self.symmetric

    def written(self, *, modes: bool = False) -> str:
        """Return the operator in words, with its norm mode if ``modes``."""
        mode = getattr(self, "norm_mode", None) if modes else None
        name = self.title or type(self).__name__
        return name if mode is None else f"{name} ({mode})"

    @property
    def T(self) -> "Operator":
        """The transpose, sharing this operator's model."""
        from .combined import Transposed

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
                unit = torch.zeros(columns, dtype=self.torch_dtype, device=self.device)
                unit[j] = 1
                product = self.product(unit)
                matrix[:, j] = product.detach().cpu().double().numpy()
        return matrix


def _algebra() -> Any:
    """Return the module of combined operators, which imports this one."""
    from . import algebra

    return algebra


def _to_numpy(tensor: Tensor) -> np.ndarray:
    """Return an array, in float32 if NumPy lacks the type."""
    given = tensor.detach().cpu()
    return (given.float() if given.dtype is torch.bfloat16 else given).numpy()


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
        return [operator.product(vectors[0]).detach()]
    return operator.matvecs(torch.stack(list(vectors))).unbind()
