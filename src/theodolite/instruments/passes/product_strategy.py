"""The cheapest way to use statistics of all the data, if one graph does not fit.

Either the graph of all data lies on the host and comes to the device as it is walked,
or chunks go from norm to norm together. On a CPU there is no host to offload to.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ..model.objective import samples_in, slice_batch, tensors_in
from ..norms.segments import at_work, carried_bytes, computed_bytes, segments_of
from ..norms.tape import NotOnTape, record
from . import forecast
from .grouping import Chunk

if TYPE_CHECKING:
    from .set_up import GraphMemory

# Gradients a product, as bench/results/whole_data.json has them on a CPU; large chunks
# of a ResNet-20 took 2.1 and 2.8 on an H200. Strategies are compared on a GPU only.
_ONE_GRAPH = 2.5
_IN_STEP = 3.0
# What an operator and its derivatives hold at once, in tensors of the largest size.
_AT_WORK = 8
# How often tensors that cross norms go to the host and back: values and tangents are
# put once, and fetched once on the way out and once on the way back.
_CARRIED = 3


@dataclass(frozen=True, kw_only=True)
class ProductStrategy:
    """One way to compute a product where batch statistics run over all the data.

    Attributes:
        name: Its name.
        gradients: Time of a product, in gradients of all the data, transfers apart.
        device_bytes: Memory that it takes on the device.
        host_bytes: Memory that it takes on the host.
        moved_bytes: Bytes that a product moves between the two.
    """

    name: str
    gradients: float
    device_bytes: int
    host_bytes: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Memory and speed of this machine, as measured.

    Attributes:
        device_bytes: Memory for graphs on the device.
        host_bytes: Memory for them on the host.
        gradient_seconds: Time of one gradient of all the data.
        bytes_per_second: Rate of transfers between device and host.
    """

    device_bytes: int
    host_bytes: int
    gradient_seconds: float
    bytes_per_second: float

    def seconds(self, way: ProductStrategy) -> float:
        """Return the time of a product; transfers are not hidden behind work."""
        moving = way.moved_bytes / self.bytes_per_second
        return way.gradients * self.gradient_seconds + moving

    def cheapest(self, ways: Sequence[ProductStrategy]) -> ProductStrategy | None:
        """Return the fastest strategy that fits, or None where none does.

        Example:
            >>> kept = ProductStrategy(name="kept", gradients=2.5, device_bytes=90)
            >>> swept = ProductStrategy(name="swept", gradients=4.5, device_bytes=30)
            >>> small = Machine(
            ...     device_bytes=50,
            ...     host_bytes=0,
            ...     gradient_seconds=1.0,
            ...     bytes_per_second=1e9,
            ... )
            >>> small.cheapest([kept, swept]).name
            'swept'
        """
        fitting = [
            way
            for way in ways
            if way.device_bytes <= self.device_bytes
            and way.host_bytes <= self.host_bytes
        ]
        return min(fitting, key=self.seconds, default=None)


@dataclass(frozen=True, kw_only=True, eq=False)
class StrategyChoice:
    """Compares the strategies for a graph of all the data, in a session.

    Attributes:
        memory: Forecasts the memory of graphs.
    """

    memory: "GraphMemory"

    def offloads(self) -> bool:
        """Return whether one graph on the host is the cheapest strategy that fits."""
        if self.memory.prepared.device.type == "cpu":
            return False
        try:
            ways = self.ways()
            way = self._machine().cheapest(ways)
        except Exception:  # the model or loss accepts no fewer samples
            return False
        return way is not None and way.name == "one graph on the host"

    def ways(self) -> list[ProductStrategy]:
        """Return the cost of each strategy."""
        batch, samples = self.memory.prepared.items[0], self.memory.samples
        few = min(4, samples_in(batch) or 1)
        saved, factor = self.memory.saved(few), samples / few
        whole, copied = int(factor * saved.bytes), self.memory.copied()
        whole_graphs = [
            ProductStrategy(
                name="one graph",
                gradients=_ONE_GRAPH,
                device_bytes=copied + (self.memory.tightly(samples) or 0),
            ),
            ProductStrategy(
                name="one graph on the host",
                gradients=_ONE_GRAPH,
                device_bytes=copied + int(_AT_WORK * factor * saved.largest),
                host_bytes=whole,
                moved_bytes=int(factor * saved.fetched),
            ),
        ]
        return whole_graphs + self._lockstep(few, factor)

    def _lockstep(self, few: int, factor: float) -> list[ProductStrategy]:
        prepared = self.memory.prepared
        chunk = Chunk(data=slice_batch(prepared.items[0], 0, few))
        try:
            tensors = tensors_in(chunk.data)
            tape = record(lambda: prepared.run(chunk, check=False), tensors)
            cut = segments_of(tape)
        except NotOnTape:
            return []
        carried, adjoints = (int(factor * size) for size in carried_bytes(cut))
        largest = max(samples_in(item) or 0 for item in prepared.items)
        computed = computed_bytes(cut) * largest // few
        own = at_work(computed, self.memory.predict(largest))
        return [
            ProductStrategy(
                name="lockstep",
                gradients=_IN_STEP,
                device_bytes=own + carried + adjoints,
            ),
            ProductStrategy(
                name="lockstep on the host",
                gradients=_IN_STEP,
                device_bytes=own + adjoints,
                host_bytes=carried,
                moved_bytes=_CARRIED * carried,
            ),
        ]

    def _machine(self) -> Machine:
        prepared = self.memory.prepared
        batch, device = prepared.items[0], prepared.device

        def gradient() -> object:
            value = prepared.run(Chunk(data=batch), check=False).sum()
            return torch.autograd.grad(value, prepared.leaves, allow_unused=True)

        seconds = measured_seconds(gradient, device)
        return Machine(
            device_bytes=self.memory.allowed,
            host_bytes=forecast.budget(None, torch.device("cpu")),
            gradient_seconds=seconds * self.memory.samples / (samples_in(batch) or 1),
            bytes_per_second=measured_rate(device),
        )


def measured_seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the time of the second run of some work."""
    work()
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def measured_rate(device: torch.device, *, size: int = 2**26) -> float:
    """Return the rate of transfers to the host and back, in bytes per second."""
    there = torch.empty(size, dtype=torch.uint8, device=device)
    here = torch.empty(
        size, dtype=torch.uint8, pin_memory=device.type == "cuda", device="cpu"
    )

    def both_ways() -> None:
        here.copy_(there)
        there.copy_(here)

    return 2 * size / measured_seconds(both_ways, device)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
