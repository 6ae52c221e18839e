"""Vectors that a solver keeps, and where: as requested, or where there is room.

A solver stores whole vectors and gets whole vectors back, on the operator's device; the
basis computes the products with all of them at once. Only these differ between
:class:`DeviceBasis` and those in ``basis_on_host`` and ``basis_over_ranks``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError

from ..distributed.processes import Team
from ..operators.operator import Operator
from ..operators.vectors import combined, inner, stretches, take_out
from ..passes.forecast import Place, forecast_of

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

    def __init__(self, capacity: int, length: int, like: Tensor | Operator) -> None:
        self.capacity, self.length = capacity, length
        given = like.torch_dtype if isinstance(like, Operator) else like.dtype
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
        given = torch.as_tensor(np.ascontiguousarray(weights))
        return given.to(dtype=self.dtype, device=self._device)


class DeviceBasis(Basis):
    """Rows beside the operator, in one block."""

    def __init__(self, capacity: int, length: int, like: Tensor | Operator) -> None:
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


Placement = Literal["auto", "device", "host", "shared"]


@dataclass(frozen=True)
class Storage:
    """Makes bases of one kind.

    Attributes:
        place: On the device, on the host, or shared over the processes of ``team``.
        team: Processes that share it.
        alike: Whether products come out the same in all of them.
    """

    place: Place = "device"
    team: Team | None = None
    alike: bool = False

    def basis(self, capacity: int, length: int, like: Tensor | Operator) -> Basis:
        """Return an empty basis for vectors like a given one."""
        if self.place == "shared" and self.team is not None:
            from .basis_over_ranks import SharedBasis

            return SharedBasis(capacity, length, like, self.team, alike=self.alike)
        if self.place == "host":
            from .basis_on_host import HostBasis

            return HostBasis(capacity, length, like)
        return DeviceBasis(capacity, length, like)

    def told(self, words: str) -> str:
        """Add the place of the basis to a method, if it is not the device."""
        if self.place == "shared" and self.team is not None:
            return f"{words}, basis over {self.team.size} processes"
        return words if self.place == "device" else f"{words}, basis on the host"


ON_DEVICE = Storage()


def storage_for(
    operator: Operator,
    wish: Placement,
    *,
    vectors: int,
    least: int | None = None,
    length: int | None = None,
) -> Storage:
    """Return where to keep a basis, or raise if there is no room for it.

    Args:
        operator: Whose products fill it.
        wish: The requested place, or "auto" for the fastest with room.
        vectors: How many it may come to hold.
        least: How many it holds for certain; as many by default.
        length: Numbers that each of them holds; as many as columns by default.
    """
    _refuse_other_wishes(operator, wish)
    if wish == "shared":
        team = _team(operator)
        return Storage("shared", team, alike=team is getattr(operator, "team", None))
    if wish != "auto":
        return Storage(wish)
    forecast = forecast_of(operator, vectors=vectors, length=length)
    if forecast.placement is not None:
        team = getattr(operator, "team", None)
        return Storage(forecast.placement, team, alike=True)
    # A processor's memory is taken as rows are written, not before.
    share = forecast.basis * (least or vectors) // max(1, vectors)
    if operator.device.type == "cpu" and share <= forecast.device_free:
        return ON_DEVICE
    raise MeasurementError(
        f"{forecast}, or lower basis_bytes, which makes do with fewer vectors"
    )


def _refuse_other_wishes(operator: Operator, wish: Placement) -> None:
    team = getattr(operator, "team", None) or Team()
    if not team.alike(get_args(Placement).index(wish)):
        raise ConfigError(
            f"basis is {wish!r} on this rank and another on others: pass the same on "
            "every rank"
        )


def _team(operator: Operator) -> Team:
    """Return the operator's own team, or that of all processes."""
    team = getattr(operator, "team", None) or Team()
    if not team.several and dist.is_available() and dist.is_initialized():
        team = Team(True)
    if not team.several:
        raise ConfigError(
            "basis is 'shared', and this process is alone: start several with "
            "torchrun, or pass basis='host'"
        )
    return team
