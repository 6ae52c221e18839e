"""A basis that several processes share; each keeps a slice of every row.

Vectors that come and go are whole, and the same, in all processes; so are operators'
products. Coefficients are sums over slices, and slices that were changed are gathered
once, after the second pass. All processes make the same calls in the same order, and
read the same numbers off them, so that they take the same decisions.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..distributed.processes import Team
from ..operators.operator import Operator
from ..operators.vectors import Basis, DeviceBasis, products


class SharedBasis(Basis):
    """Rows of which each process of a team keeps a slice on its device.

    Args:
        capacity: Rows that it holds at most.
        length: Numbers per row.
        like: A vector such as those that it will hold, or the operator of them.
        team: Processes that share it.
        alike: Whether products come out the same in all processes, as sums over them
            do; else a bit may differ, and the owner of a slice decides.
    """

    def __init__(
        self,
        capacity: int,
        length: int,
        like: Tensor | Operator,
        team: Team,
        *,
        alike: bool = False,
    ) -> None:
        super().__init__(capacity, length, like)
        self._alike = alike
        self._team, self.where = team, f"over {team.size} processes"
        # Slices of equal width, the last of which end in zeros.
        self._width = -(-self.length // team.size)
        self._first = min(team.rank * self._width, self.length)
        self._own = DeviceBasis(capacity, self._width, like)

    def store(self, place: int, vector: Tensor) -> None:
        """Keep this process's slice of a vector."""
        self._own.store(place, self._slice(vector))

    def row(self, place: int) -> Tensor:
        """Return one row, gathered."""
        return self.whole(self._own.row(place))

    def remove(self, vector: Tensor, count: int) -> np.ndarray:
        """Take the rows' components out of a vector, in place, and return them."""
        return self._removed(vector, count, times=1)

    def remove_twice(self, vector: Tensor, count: int) -> np.ndarray:
        """Do so twice, and gather once."""
        return self._removed(vector, count, times=2)

    def combined(self, weights: np.ndarray) -> Tensor:
        """Return weighted sums of the first rows, gathered."""
        own = self._own.combined(weights)
        if not len(own):
            return own.new_empty(0, self.length)
        return torch.stack([self.whole(row) for row in own])

    def rotate(self, weights: np.ndarray) -> None:
        """Replace the first rows by weighted sums of them."""
        self._own.rotate(weights)

    def inner(self, other: Basis) -> Tensor:
        """Return the products of all rows with all of another basis of this kind."""
        assert isinstance(other, SharedBasis)
        return self._team.sum(self._own.inner(other._own))

    def stretches(self, width: int) -> Iterator[Tensor]:
        """Yield all rows of some columns at a time, for this process's slice."""
        yield from self._own.stretches(width)

    def whole(self, part: Tensor) -> Tensor:
        """Gather the slices of a vector."""
        return torch.cat(self._team.gather(part.contiguous()))[: self.length]

    def agreed(self, vector: Tensor) -> Tensor:
        """Take each slice from its owner."""
        return vector if self._alike else self.whole(self._slice(vector))

    @property
    def device_bytes(self) -> int:
        """Bytes of this process's slices."""
        return self._own.device_bytes

    def _removed(self, vector: Tensor, count: int, *, times: int) -> np.ndarray:
        rows, own = self._own.rows(count), self._slice(vector)
        total = torch.zeros(count, dtype=torch.float64, device=self._device)
        for _ in range(times):
            coefficients = self._team.sum(products(rows, own).double())
            own -= rows.T @ coefficients.to(self.dtype)
            total += coefficients
        vector.copy_(self.whole(own))
        return total.cpu().numpy()

    def _slice(self, vector: Tensor) -> Tensor:
        """Return a copy of this process's slice of a vector, in full width."""
        own = vector.new_zeros(self._width)
        here = vector[self._first : self._first + self._width]
        own[: len(here)] = here
        return own
