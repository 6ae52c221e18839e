"""Forecast memory before it is taken: of graphs, of vectors and of a basis."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError, free_memory

from ..distributed.processes import Team

# Share of the free memory for a graph; the rest is for vectors and for
# the other work of the process.
_SHARE = 0.8
# At its peak a product holds the graph and temporary tensors. Measured on
# convolutional, recurrent and attention models on a CPU: 2.2 to 2.7 times the graph,
# which itself was forecast within 2 %.
_AT_PEAK = 2.7
# Vectors that a step of a solver holds at its peak beside weights, basis and graph: the
# gradient, the vector that is multiplied, the product as it comes, is added up and is
# joined, and its copy. Measured on a transformer of 23 million parameters: 5.0.
IN_FLIGHT = 6


@dataclass
class Saved:
    """Memory that graphs keep alive.

    Attributes:
        bytes: Total bytes.
        fetched: Bytes read by a backward pass; a tensor counts each time it was saved.
        largest: Bytes of the largest tensor.
    """

    bytes: int = 0
    fetched: int = 0
    largest: int = 0


@contextmanager
def saved_tensors(known: Iterable[Tensor]) -> Iterator[Saved]:
    """Measure the memory that graphs built inside keep alive.

    Args:
        known: Tensors that exist anyway, such as parameters.
    """
    kept: dict[int, Tensor] = {}  # kept until the count is done, so no address repeats
    saved = Saved()
    with torch._C.DisableTorchFunction():
        owned = {tensor.untyped_storage().data_ptr() for tensor in known}

    def pack(tensor: Tensor) -> Tensor:
        place = tensor.untyped_storage().data_ptr()
        kept.setdefault(place, tensor.detach())
        if place not in owned:
            saved.fetched += tensor.numel() * tensor.element_size()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved
    with torch._C.DisableTorchFunction():
        sizes = [
            tensor.untyped_storage().nbytes()
            for place, tensor in kept.items()
            if place not in owned
        ]
    saved.bytes, saved.largest = sum(sizes), max(sizes, default=0)


def predict_bytes(measured: Mapping[int, int], samples: int) -> int:
    """Extrapolate the graph of a few samples to all, as a constant plus a rate.

    Args:
        measured: Bytes of the graph for one or two small numbers of samples.
        samples: Number of samples to forecast for.

    Example:
        >>> predict_bytes({2: 120, 4: 140}, 1000)
        27270
    """
    (few, base), *others = measured.items()
    rate = base / few
    for more, larger in others:
        rate = (larger - base) / (more - few)
    return int(_AT_PEAK * (base + max(rate, 0.0) * (samples - few)))


def few_samples(samples: int, at_most: int) -> tuple[int, int]:
    """Return two numbers of samples to measure, not many more than wanted.

    One alone is too few for batch norms of vectors.
    """
    return min(2, at_most), min(4, at_most, max(samples, 3))


def available_bytes(device: torch.device) -> int:
    """Return the free memory of a device, as reported by the system."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + idle
    return free_memory()


def budget(given: int | None, device: torch.device) -> int:
    """Return the memory limit of graphs: ``graph_bytes``, or most free memory."""
    if given is None:
        return int(_SHARE * available_bytes(device))
    return as_bytes("graph_bytes", given)


def as_bytes(name: str, value: object) -> int:
    """Return a memory limit as a number of bytes, or raise if it is not one.

    Args:
        name: Name of the argument.
        value: The given value.
    """
    if isinstance(value, float) and value.is_integer():  # such as 8e9
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ConfigError(
            f"{name} is {value!r}: pass a whole number of bytes from 0 up, such as "
            "2**30"
        )
    return int(value)


def still_to_come(peak: int, *, held: bool) -> int:
    """Return the peak memory of a pass, minus a graph that is held already."""
    return int(peak * (1 - 1 / _AT_PEAK)) if held else peak


def rounds(operator: Any) -> bool:
    """Return whether rounding is measured: below float64, and where terms cancel."""
    return operator.torch_dtype != torch.float64 or operator.cancels


def float64_bytes(parameters: int, peak: int | None) -> int:
    """Return the memory of products of a float64 copy of a float32 model.

    Args:
        parameters: Numbers per vector.
        peak: Forecast of the model's own graph, if there is one.
    """
    return 8 * parameters * (1 + IN_FLIGHT) + 2 * (peak or 0)


def refuse_beyond(wanted: int, allowed: int, what: str, advice: str) -> None:
    """Raise an error if something would not fit in memory."""
    if wanted > allowed:
        raise MeasurementError(
            f"{what} takes about {wanted / 2**30:.3g} GiB, allowed are "
            f"{allowed / 2**30:.3g}: {advice}"
        )


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
    operator: Any, *, vectors: int, length: int | None = None
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
    host = free = free_memory()
    if operator.device.type != "cpu":
        free = available_bytes(operator.device)
    host //= team.size
    if team.several:
        free, host = (-int(team.largest(-float(x))) for x in (free, host))
    held = bool(getattr(operator, "graphs_held", 0))
    peak = getattr(operator, "forecast_bytes", None) or 0
    coarse = rounds(operator)
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
