"""Where a basis is kept: as requested, or where the memory forecast finds room."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch.distributed as dist
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError, free_memory

from ..distributed.processes import Team
from ..operators.operator import Operator
from ..operators.rounding_noise import is_measured
from ..passes.forecast import IN_FLIGHT, available_bytes, float64_bytes, still_to_come
from .basis import Basis, DeviceBasis, HostBasis
from .basis_over_ranks import SharedBasis

Place = Literal["device", "shared", "host"]


@dataclass(frozen=True, kw_only=True)
class MemoryForecast:
    """Bytes that a measurement will take, before it takes them.

    Attributes:
        parameters: Numbers per vector.
        weights: Bytes of the weights, which the model has allocated already.
        gradient: Bytes of the gradient, which is kept with its graph.
        vectors: Bytes of the other vectors that a product needs.
        graph: Peak bytes of the graph, 0 if unknown.
        check: Bytes of a float64 copy, which measures the rounding of a model in lower
            precision, after the basis is freed.
        basis_vectors: Number of vectors in the basis.
        basis: Bytes of the basis; ``basis_bytes`` must be at least this.
        device: Device of the products.
        device_free: Bytes that are free there; the least of all processes.
        host_free: Bytes that are free on the host, for this process.
        processes: How many share the work.

    Example:
        >>> forecast = MemoryForecast(
        ...     parameters=2**30, weights=2**32, gradient=2**32, vectors=5 * 2**32,
        ...     graph=2**33, check=0, basis_vectors=10, basis=10 * 2**32,
        ...     device="cuda:0", device_free=40 * 2**30, host_free=200 * 2**30,
        ...     processes=1,
        ... )
        >>> forecast.placement
        'host'
        >>> print(forecast)
        1,073,741,824 parameters take 4 GiB of weights, 4 of gradient, 8 of graph, 20 \
of vectors on their way and 40 of basis (10 vectors), with 40 GiB free on cuda:0 and \
200 on the host: the basis has to be kept on the host
    """

    parameters: int
    weights: int
    gradient: int
    vectors: int
    graph: int
    check: int
    basis_vectors: int
    basis: int
    device: str
    device_free: int
    host_free: int
    processes: int

    @property
    def beside(self) -> int:
        """Bytes that products take on the device, without the basis."""
        return self.gradient + self.vectors + self.graph

    @property
    def fits(self) -> tuple[Place, ...]:
        """Where there is room for the basis, the fastest first."""
        room, places = self.device_free - self.beside, []
        if self.basis <= room:
            places.append("device")
        if self.processes > 1 and self.basis / self.processes <= room:
            places.append("shared")
        if not self.device.startswith("cpu") and room >= 0:
            places += ["host"] if self.basis <= self.host_free else []
        return tuple(places)

    @property
    def placement(self) -> Place | None:
        """The fastest place with room for the basis, None where there is none."""
        return self.fits[0] if self.fits else None

    @property
    def finer(self) -> bool:
        """Whether there is room for the copy in float64; else it is in float32."""
        return self.beside + self.check <= self.device_free

    def __str__(self) -> str:
        """Say what is taken, what is free, and where the basis goes."""
        power, unit = (30, "GiB") if self.weights >= 2**27 else (20, "MiB")

        def told(size: int) -> str:
            return f"{size / 2**power:.3g}"

        host = f" and {told(self.host_free)} on the host"
        host = "" if self.device.startswith("cpu") else host
        after = f", then {told(self.check)} of a copy in float64" if self.check else ""
        return (
            f"{self.parameters:,} parameters take {told(self.weights)} {unit} of "
            f"weights, {told(self.gradient)} of gradient, {told(self.graph)} of graph, "
            f"{told(self.vectors)} of vectors on their way and {told(self.basis)} of "
            f"basis ({self.basis_vectors} vectors){after}, with "
            f"{told(self.device_free)} {unit} free on {self.device}{host}: "
            f"{self._conclusion()}"
        )

    def _conclusion(self) -> str:
        if self.placement is None:
            wide = "" if self.beside <= self.device_free else "products do not fit: "
            return wide + "pass fewer parameters or samples, or use more processes"
        words: dict[Place, str] = {
            "device": "the basis fits on the device",
            "shared": f"the basis has to be shared over {self.processes} processes",
            "host": "the basis has to be kept on the host",
        }
        less = "" if self.finer else ", and the copy to be in float32"
        return words[self.placement] + less


def forecast_of(
    operator: Operator, *, vectors: int, length: int | None = None
) -> MemoryForecast:
    """Forecast the memory of a solver that keeps some vectors.

    Under a team, all of its processes ask together, and get the same answer.

    Args:
        operator: The operator; no product is computed.
        vectors: How many are kept.
        length: Numbers that each of them holds; as many as columns by default.
    """
    size, width = operator.shape[1], operator.torch_dtype.itemsize
    team = getattr(operator, "team", None) or Team()
    free, host = available_bytes(operator.device), free_memory() // team.size
    if team.several:
        free, host = (-int(team.largest(-float(x))) for x in (free, host))
    held = bool(getattr(operator, "graphs_held", 0))
    peak = getattr(operator, "forecast_bytes", None) or 0
    coarse = is_measured(operator)
    return MemoryForecast(
        parameters=size,
        weights=size * width,
        gradient=0 if held else size * width,
        vectors=(IN_FLIGHT - 1) * size * width,
        graph=still_to_come(peak, held=held),
        check=float64_bytes(size, peak) if coarse else 0,
        basis_vectors=vectors,
        basis=vectors * (length or size) * width,
        device=str(operator.device),
        device_free=free,
        host_free=host,
        processes=team.size,
    )


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
            return SharedBasis(capacity, length, like, self.team, alike=self.alike)
        kind = HostBasis if self.place == "host" else DeviceBasis
        return kind(capacity, length, like)

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
    """Refuse an unknown place."""


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
