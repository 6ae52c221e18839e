"""Where a basis is kept: as its user wishes, or where the forecast finds room."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch.distributed as dist
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError, unknown_name
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.solvers.basis import Basis, DeviceBasis
from theodolite.instruments.solvers.basis_on_host import HostBasis
from theodolite.instruments.solvers.basis_over_ranks import SharedBasis
from theodolite.instruments.solvers.fitting import Place, forecast_of
from theodolite.instruments.team.processes import Team

Placement = Literal["auto", "device", "host", "shared"]


@dataclass(frozen=True)
class Storage:
    """Makes bases of one kind.

    Attributes:
        place: On the device, on the host, or shared over the processes of ``team``.
        team: Those that share it.
        alike: Whether products come out the same in all of them.
    """

    place: Place = "device"
    team: Team | None = None
    alike: bool = False

    def basis(self, capacity: int, length: int, like: Tensor | Operator) -> Basis:
        """Make an empty basis of vectors such as one that is given."""
        if self.place == "shared" and self.team is not None:
            return SharedBasis(capacity, length, like, self.team, alike=self.alike)
        kind = HostBasis if self.place == "host" else DeviceBasis
        return kind(capacity, length, like)

    def told(self, words: str) -> str:
        """Add to a method where the basis was, if it was not on the device."""
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
    """Return where a basis is to be kept, or say that there is no room for it.

    Args:
        operator: Whose products fill it.
        wish: The place, or "auto" for the fastest with room.
        vectors: How many it may come to hold.
        least: How many it holds for certain; as many by default.
        length: Numbers that each of them holds; as many as columns by default.
    """
    check_placement(wish)
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


def check_placement(wish: str) -> None:
    """Refuse a place that there is not."""
    if wish not in get_args(Placement):
        raise unknown_name("place of a basis", wish, get_args(Placement))


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
    if not team.several and operator.free_elsewhere() is not None:
        raise ConfigError(
            "basis is 'shared', and with an executor all vectors are kept here: pass "
            "basis='device' or basis='host'"
        )
    if not team.several:
        raise ConfigError(
            "basis is 'shared', and this process is alone: start several with "
            "torchrun, or pass basis='host'"
        )
    return team
