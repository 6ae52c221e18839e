"""Vectors that a solver keeps, wherever there is room for them.

A solver hands over whole vectors and gets whole vectors back, on the operator's device;
the basis stores them and does the products with all of them at once. Only those differ
between the places: :class:`DeviceBasis` here, ``basis_on_host``, ``basis_over_ranks``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.solvers.sums import combined, inner, stretches, take_out

# Columns of the basis that a restart rotates at a time: 2^20 float64 are 8 MiB a row.
_CHUNK = 2**20


class Basis(ABC):
    """Rows of equal length, zero until they are stored.

    Subclasses are final. All methods that take a ``count`` speak of the first so many
    rows; coefficients and weights are float64 arrays.

    Args:
        capacity: Rows that it holds at most.
        length: Numbers a row.
        like: A vector such as those that it will hold, or the operator of them.

    Attributes:
        capacity: Rows that it holds at most.
        length: Numbers a row.
        dtype: Their type, the operator's own.
        where: Where the rows are, in words for a reading's method; empty for the device
            itself.
    """

    where: str = ""

    def __init__(self, capacity: int, length: int, like: Tensor | Operator) -> None:
        self.capacity, self.length = capacity, length
        self.dtype, self._device = like.dtype, like.device

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
        """Put weighted sums of the first rows in the place of the first of them."""

    @abstractmethod
    def inner(self, other: "Basis") -> Tensor:
        """Return the products of all rows with all of another basis of this kind."""

    @abstractmethod
    def stretches(self, width: int) -> Iterator[Tensor]:
        """Yield all rows of some columns at a time, those that are kept here."""

    def whole(self, part: Tensor) -> Tensor:
        """Return a vector of all columns from that of those which are kept here."""
        return part

    def agreed(self, vector: Tensor) -> Tensor:
        """Return a vector as all processes that share the basis are to see it."""
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
        given = torch.as_tensor(np.ascontiguousarray(weights))
        return given.to(dtype=self.dtype, device=self._device)


class DeviceBasis(Basis):
    """Rows beside the operator, in one block."""

    def __init__(self, capacity: int, length: int, like: Tensor | Operator) -> None:
        super().__init__(capacity, length, like)
        self._rows = torch.zeros(capacity, length, dtype=like.dtype, device=like.device)

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
        """Put weighted sums of the first rows in the place of the first of them."""
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
