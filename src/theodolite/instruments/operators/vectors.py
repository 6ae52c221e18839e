"""Flat vectors: sums over long ones, random ones, and rows that a solver keeps.

CPU kernels add float32 numbers one after the other: for 44 million Gaussian numbers the
norm was off by 0.3 %, and products with rows by 2 %, which is too much to make a basis
orthogonal. In blocks of 65,536 numbers both are right to 1e-6, in the same time. A GPU
sums in a tree, so its blocks may be longer. Matrix products on a GPU index in 32 bits:
rows beyond that are copied, some columns at a time.

A solver stores whole vectors and gets whole vectors back, on the operator's device; the
basis computes the products with all of them at once. Only these differ between
:class:`DeviceBasis` and those in ``basis_on_host`` and ``basis_over_ranks``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

# Numbers that are added up in float32 on a processor and on a GPU.
_STRETCH, _ON_GPU = 2**16, 2**24
# Entries of a dot product that are converted to float64 at a time: 8 MiB.
_EXACT = 2**20
# Places that a GPU's products of matrices can tell apart.
_PLACES = 2**31 - 1
# Numbers that are checked together for NaN and infinity.
_SEEN = 2**26


def products(rows: Tensor, vector: Tensor) -> Tensor:
    """Return products of rows with a vector; in float64 where the vector is long."""
    width = _width(vector)
    if width is None and not _far(rows):
        return rows @ vector
    width = width or _ON_GPU
    total = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    pairs = zip(stretches(rows, width), vector.split(width), strict=True)
    for part, same in pairs:
        total += (part @ same).double()
    return total


def inner(rows: Tensor, others: Tensor) -> Tensor:
    """Return the products of rows with other rows, in float64."""
    width = _width(rows[0]) if len(rows) else None
    if width is None and not (_far(rows) or _far(others)):
        return (rows @ others.T).double()
    width = width or _ON_GPU
    total = rows.new_zeros(len(rows), len(others), dtype=torch.float64)
    pairs = zip(stretches(rows, width), stretches(others, width), strict=True)
    for part, same in pairs:
        total += (part @ same.T).double()
    return total


def take_out(vector: Tensor, rows: Tensor) -> Tensor:
    """Take the rows' components out of a vector, in place, and return them."""
    coefficients = products(rows, vector)
    if not _far(rows):
        vector -= rows.T @ coefficients.to(rows.dtype)
        return coefficients
    pairs = zip(stretches(rows, _ON_GPU), vector.split(_ON_GPU), strict=True)
    for part, same in pairs:
        same -= part.T @ coefficients.to(rows.dtype)
    return coefficients


def combined(weights: Tensor, rows: Tensor) -> Tensor:
    """Return weighted sums of rows, one for each row of weights."""
    if not _far(rows):
        return weights @ rows
    out = rows.new_empty(*weights.shape[:-1], rows.shape[1])
    pairs = zip(stretches(rows, _ON_GPU), out.split(_ON_GPU, dim=-1), strict=True)
    for part, same in pairs:
        same.copy_(weights @ part)
    return out


def stretches(rows: Tensor, width: int) -> Iterator[Tensor]:
    """Yield all rows of some columns at a time, sized for matrix products."""
    for part in rows.split(width, dim=1):
        yield part.contiguous() if _far(rows) else part


def norm(vector: Tensor) -> float:
    """Return the norm of a vector."""
    width = _width(vector)
    if width is None:
        return float(vector.norm())
    total = torch.zeros((), dtype=torch.float64, device=vector.device)
    for part in vector.split(width):
        total += part.norm().double().square()
    return float(total.sqrt())


def dot(first: Tensor, second: Tensor) -> float:
    """Return the dot product, summed in float64 block by block."""
    width = _ON_GPU if first.device.type == "cuda" else _EXACT
    if 0 < len(first) <= width:
        return float(first.double() @ second.double())
    pairs = zip(first.split(width), second.split(width), strict=True)
    parts = [a.double() @ b.double() for a, b in pairs]
    # Read back once: a GPU would be waited for at every stretch.
    return sum(torch.stack(parts).tolist()) if parts else 0.0


def squared_norm(vector: Tensor) -> float:
    """Return the squared norm, summed in float64 block by block."""
    if len(vector) <= _EXACT:
        return float(vector.double().square().sum())
    return dot(vector, vector)


def all_finite(vector: Tensor) -> bool:
    """Return whether a vector holds neither NaN nor infinity, block by block."""
    parts = (vector,) if len(vector) <= _SEEN else vector.split(_SEEN)
    return all(bool(torch.isfinite(part).all()) for part in parts)


def _far(rows: Tensor) -> bool:
    """Return whether rows exceed the 32-bit indices of matrix products on a GPU."""
    return rows.device.type == "cuda" and len(rows) * rows.shape[1] > _PLACES


def _width(vector: Tensor) -> int | None:
    """Return the block length for a vector, None if it is not split."""
    width = _ON_GPU if vector.device.type == "cuda" else _STRETCH
    short = len(vector) <= width or vector.dtype == torch.float64
    return None if short else width


# Numbers drawn in float64 at a time, before they are rounded and moved: 8 MiB.
_DRAW = 2**20
# From _LONG numbers on, every _APART of them use another generator, so that threads can
# draw them: a billion from one generator take 15 seconds.
_LONG, _APART = 2**27, 2**24


class VectorSpace(Protocol):
    """What random vectors are drawn for: an operator."""

    shape: tuple[int, int]
    torch_dtype: torch.dtype
    device: torch.device


def normal_vector(like: VectorSpace, generator: np.random.Generator) -> Tensor:
    """Return a standard normal vector for the operator.

    Up to 134 million numbers are those of one draw, the same on every device. More are
    the same for every number of threads; a GPU draws others.
    """
    vector = _empty(like)
    if len(vector) < _LONG:
        _fill(vector, generator)
        return vector
    if vector.device.type == "cuda":
        return vector.normal_(generator=_gpu_generator(vector, generator))
    parts = vector.split(_APART)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(_fill, parts, generator.spawn(len(parts))))
    return vector


def sign_vector(like: VectorSpace, generator: np.random.Generator) -> Tensor:
    """Return random signs for the operator; a GPU draws a long vector itself."""
    vector = _empty(like)
    if len(vector) >= _LONG and vector.device.type == "cuda":
        made = _gpu_generator(vector, generator)
        return vector.bernoulli_(0.5, generator=made).mul_(2).sub_(1)
    for part in vector.split(_DRAW):
        drawn = generator.integers(0, 2, len(part)) * 2.0 - 1.0
        part.copy_(torch.from_numpy(drawn).to(part.dtype))
    return vector


def _empty(like: VectorSpace) -> Tensor:
    return torch.empty(like.shape[1], dtype=like.torch_dtype, device=like.device)


def _gpu_generator(vector: Tensor, generator: np.random.Generator) -> torch.Generator:
    """Return a generator on a GPU, seeded by another."""
    seed = int(generator.integers(2**63 - 1))
    return torch.Generator(vector.device).manual_seed(seed)


def _fill(vector: Tensor, generator: np.random.Generator) -> None:
    for part in vector.split(_DRAW):
        drawn = torch.from_numpy(generator.standard_normal(len(part)))
        part.copy_(drawn.to(part.dtype))


# Columns of the basis that a restart rotates at a time: 2^20 float64 are 8 MiB a row.
_CHUNK = 2**20


class Basis(ABC):
    """Rows of equal length, zero until they are stored.

    Subclasses are final. All methods that take a ``count`` speak of the first so many
    rows; coefficients and weights are float64 arrays.

    Args:
        capacity: Rows that it holds at most.
        length: Numbers per row.
        like: A vector such as those that it will hold, or the operator of them.

    Attributes:
        capacity: Rows that it holds at most.
        length: Numbers per row.
        dtype: Their type, the operator's own.
        where: Where the rows are, in words for a reading's method; empty for the device
            itself.
    """

    where: str = ""

    def __init__(
        self, capacity: int, length: int, like: "Tensor | VectorSpace"
    ) -> None:
        self.capacity, self.length = capacity, length
        given = like.dtype if isinstance(like, Tensor) else like.torch_dtype
        self.dtype, self._device = given, like.device

    @abstractmethod
    def store(self, place: int, vector: Tensor) -> None:
        """Keep a vector as one of the rows."""

    @abstractmethod
    def row(self, place: int) -> Tensor:
        """Return one row on the device; what is written to it may be lost."""

    @abstractmethod
    def remove(self, vector: Tensor, count: int) -> np.ndarray:
        """Take the rows' components out of a vector, in place, and return them."""

    @abstractmethod
    def combined(self, weights: np.ndarray) -> Tensor:
        """Return weighted sums of the first rows, one for each row of weights."""

    @abstractmethod
    def rotate(self, weights: np.ndarray) -> None:
        """Replace the first rows by weighted sums of them."""

    @abstractmethod
    def inner(self, other: "Basis") -> Tensor:
        """Return the products of all rows with all of another basis of this kind."""

    @abstractmethod
    def stretches(self, width: int) -> Iterator[Tensor]:
        """Yield all rows of some columns at a time, for columns that are kept here."""

    def whole(self, part: Tensor) -> Tensor:
        """Return a vector of all columns from the columns that are kept here."""
        return part

    def agreed(self, vector: Tensor) -> Tensor:
        """Return a vector that is the same on all processes that share the basis."""
        return vector

    def remove_twice(self, vector: Tensor, count: int) -> np.ndarray:
        """Take components out, and again what rounding left of them."""
        return self.remove(vector, count) + self.remove(vector, count)

    def rows(self, count: int) -> Tensor:
        """Return the first rows as one tensor on the device."""
        return self.combined(np.eye(count))

    @property
    @abstractmethod
    def device_bytes(self) -> int:
        """Bytes on the device that the rows take for good."""

    def _weights(self, weights: np.ndarray) -> Tensor:
        given = torch.from_numpy(np.ascontiguousarray(weights))
        return given.to(dtype=self.dtype, device=self._device)


class DeviceBasis(Basis):
    """Rows beside the operator, in one block."""

    def __init__(
        self, capacity: int, length: int, like: "Tensor | VectorSpace"
    ) -> None:
        super().__init__(capacity, length, like)
        self._rows = torch.zeros(capacity, length, dtype=self.dtype, device=like.device)

    def store(self, place: int, vector: Tensor) -> None:
        """Keep a vector as one of the rows."""
        self._rows[place] = vector

    def row(self, place: int) -> Tensor:
        """Return one row, as it lies in memory."""
        return self._rows[place]

    def remove(self, vector: Tensor, count: int) -> np.ndarray:
        """Take the rows' components out of a vector, in place, and return them."""
        return take_out(vector, self._rows[:count]).double().cpu().numpy()

    def combined(self, weights: np.ndarray) -> Tensor:
        """Return weighted sums of the first rows, one for each row of weights."""
        return combined(self._weights(weights), self._rows[: weights.shape[1]])

    def rotate(self, weights: np.ndarray) -> None:
        """Replace the first rows by weighted sums of them."""
        count, size = weights.shape
        given = self._weights(weights)
        for columns in self._rows.split(_CHUNK, dim=1):
            # A copy, since rows may reach further than products of matrices count.
            columns[:count] = given @ columns[:size].contiguous()

    def inner(self, other: Basis) -> Tensor:
        """Return the products of all rows with all of another basis of this kind."""
        assert isinstance(other, DeviceBasis)
        return inner(self._rows, other._rows)

    def stretches(self, width: int) -> Iterator[Tensor]:
        """Yield all rows of some columns at a time."""
        yield from stretches(self._rows, width)

    def rows(self, count: int) -> Tensor:
        """Return the first rows, as they lie in memory."""
        return self._rows[:count]

    @property
    def device_bytes(self) -> int:
        """All of them."""
        return self._rows.nbytes
