"""What a measurement will take, and where there is room for its basis."""

from dataclasses import dataclass
from typing import Literal

import torch

from theodolite.core import free_memory
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.passes.forecast import (
    IN_FLIGHT,
    available_bytes,
    float64_bytes,
    still_to_come,
)
from theodolite.instruments.team.processes import Team

Place = Literal["device", "shared", "host"]


@dataclass(frozen=True, kw_only=True)
class MemoryForecast:
    """Bytes that a measurement will take, before it takes them.

    Attributes:
        parameters: Numbers a vector.
        weights: Bytes of as many; the model has them already.
        gradient: Bytes of the gradient, which is kept with its graph.
        vectors: Bytes of the other vectors that are on their way through a product.
        graph: Bytes of the graph at its peak, 0 where that could not be told.
        check: Bytes that a copy in float64 takes, which tells the rounding of a
            model below it; after the basis was let go.
        basis_vectors: Vectors that are kept.
        basis: Bytes that they take; what ``basis_bytes`` has to allow.
        device: Where products are made.
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
        """Bytes that products take on the device, whatever becomes of the basis."""
        return self.gradient + self.vectors + self.graph

    @property
    def fits(self) -> tuple[Place, ...]:
        """Where there is room for the basis, the fastest first."""
        room, found = self.device_free - self.beside, []
        if self.basis <= room:
            found.append("device")
        if self.processes > 1 and self.basis / self.processes <= room:
            found.append("shared")
        if not self.device.startswith("cpu") and room >= 0:
            found += ["host"] if self.basis <= self.host_free else []
        return tuple(found)

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
    """Forecast what a solver takes that keeps some vectors.

    Under a team, all of its processes ask together, and get the same answer.

    Args:
        operator: What is multiplied; nothing is.
        vectors: How many are kept.
        length: Numbers that each of them holds; as many as columns by default.
    """
    size, width = operator.shape[1], operator.dtype.itemsize
    team = getattr(operator, "team", None) or Team()
    free, host = available_bytes(operator.device), free_memory() // team.size
    if team.several:
        free, host = (-int(team.largest(-float(x))) for x in (free, host))
    held = bool(getattr(operator, "graphs_held", 0))
    peak = getattr(operator, "forecast_bytes", None) or 0
    coarse = operator.dtype != torch.float64
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
