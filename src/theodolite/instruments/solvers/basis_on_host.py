"""Vectors that a solver keeps in the host's memory.

They travel through the device in blocks, each with some columns of every row. Blocks
are pinned for a GPU, so that copies run at the rate of the bus. The GPU computes
products in its own precision, and their sums over blocks are float64. Removing the
components of a vector twice takes three transfers in place of four: the second
coefficients are computed while the first are subtracted, block by block.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..operators.operator import Operator
from ..operators.vectors import Basis, inner, products
from ..passes.forecast import available_bytes

# Bytes of a block: a power of two, to which pinned memory is rounded up; a copy of so
# much takes milliseconds, against microseconds to start it.
_BLOCK_BYTES = 2**28
# Largest share of the device's free memory for a block.
_SHARE = 8


class HostBasis(Basis):
    """Rows in the host's memory; the device holds a block of their columns at most."""

    where = "on the host"

    def __init__(
        self,
        capacity: int,
        length: int,
        like: Tensor | Operator,
        *,
        block_bytes: int | None = None,
    ) -> None:
        super().__init__(capacity, length, like)
        if block_bytes is None:
            block_bytes = _block_bytes(like.device)
        width = max(1, block_bytes // max(1, capacity * self.dtype.itemsize))
        self._edges = [*range(0, self.length, width), self.length]
        pinned = like.device.type == "cuda"
        self._blocks = [
            torch.zeros(
                capacity, b - a, dtype=self.dtype, pin_memory=pinned, device="cpu"
            )
            for a, b in zip(self._edges, self._edges[1:], strict=False)
        ]

    def store(self, place: int, vector: Tensor) -> None:
        """Send a vector to the host."""
        for part, block in self._cut(vector):
            block[place].copy_(part)

    def row(self, place: int) -> Tensor:
        """Return one row on the device."""
        row = torch.empty(self.length, dtype=self.dtype, device=self._device)
        for part, block in self._cut(row):
            part.copy_(block[place], non_blocking=True)
        return row

    def remove(self, vector: Tensor, count: int) -> np.ndarray:
        """Take the rows' components out of a vector, in place, and return them."""
        coefficients = self._coefficients(vector, count)
        for part, rows in self._sent(vector, count):
            part -= rows.T @ coefficients.to(self.dtype)
        return coefficients.cpu().numpy()

    def remove_twice(self, vector: Tensor, count: int) -> np.ndarray:
        """Do so twice, in three transfers."""
        first = self._coefficients(vector, count)
        second = torch.zeros_like(first)
        for part, rows in self._sent(vector, count):
            part -= rows.T @ first.to(self.dtype)
            second += products(rows, part).double()
        for part, rows in self._sent(vector, count):
            part -= rows.T @ second.to(self.dtype)
        return (first + second).cpu().numpy()

    def combined(self, weights: np.ndarray) -> Tensor:
        """Return weighted sums of the first rows, on the device."""
        given = self._weights(weights)
        sums = given.new_zeros(len(weights), self.length)
        for part, rows in self._sent(sums.T, weights.shape[1]):
            part.T.copy_(given @ rows)
        return sums

    def rotate(self, weights: np.ndarray) -> None:
        """Replace the first rows by weighted sums of them."""
        count, size = weights.shape
        given = self._weights(weights)
        for block in self._blocks:
            block[:count].copy_(given @ self._moved(block[:size]))

    def inner(self, other: Basis) -> Tensor:
        """Return the products of all rows with all of another basis of this kind."""
        assert isinstance(other, HostBasis)
        shape = self.capacity, other.capacity
        total = torch.zeros(shape, dtype=torch.float64, device=self._device)
        for ours, theirs in zip(self._blocks, other._blocks, strict=True):
            total += inner(self._moved(ours), self._moved(theirs))
        return total

    def stretches(self, width: int) -> Iterator[Tensor]:
        """Yield all rows of some columns at a time, on the device."""
        for block in self._blocks:
            yield from self._moved(block).split(width, 1)

    @property
    def device_bytes(self) -> int:
        """Bytes of the basis on the device; 0 if the device is no CPU."""
        if self._device.type != "cpu":
            return 0
        return sum(block.nbytes for block in self._blocks)

    def _coefficients(self, vector: Tensor, count: int) -> Tensor:
        coefficients = torch.zeros(count, dtype=torch.float64, device=self._device)
        for part, rows in self._sent(vector, count):
            coefficients += products(rows, part).double()
        return coefficients

    def _cut(self, vector: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        sizes = [block.shape[1] for block in self._blocks]
        yield from zip(vector.split(sizes), self._blocks, strict=True)

    def _sent(self, vector: Tensor, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the parts of a vector with the first rows of their columns."""
        for part, block in self._cut(vector) if count else ():
            yield part, self._moved(block[:count])

    def _moved(self, rows: Tensor) -> Tensor:
        # Copies and products are ordered on one CUDA stream.
        return rows.to(self._device, non_blocking=True)


def _block_bytes(device: torch.device) -> int:
    """Return the bytes of a block, fewer where little is free on a GPU."""
    if device.type == "cpu":
        return _BLOCK_BYTES
    free, size = available_bytes(device) // _SHARE, _BLOCK_BYTES
    while size > free and size > 2**20:
        size //= 2
    return size
