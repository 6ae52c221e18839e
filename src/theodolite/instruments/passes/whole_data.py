"""Which way to statistics of all the data, where one graph of it does not fit.

Either the graph of all data lies on the host and comes to the device as it is walked,
or chunks go from norm to norm together. On a CPU there is no host to turn to.
"""

from dataclasses import dataclass

import torch

from theodolite.instruments.norms.segments import (
    at_work,
    carried_bytes,
    computed_bytes,
    segments_of,
)
from theodolite.instruments.norms.tape import NotOnTape, record
from theodolite.instruments.passes import forecast
from theodolite.instruments.passes.batches import (
    samples_in,
    slice_batch,
    tensors_in,
)
from theodolite.instruments.passes.graph_memory import GraphMemory
from theodolite.instruments.passes.grouping import Chunk
from theodolite.instruments.passes.ways import (
    Machine,
    Way,
    measured_rate,
    measured_seconds,
)

# Gradients a product, as bench/results/whole_data.json has them on a CPU; large chunks
# of a ResNet-20 took 2.1 and 2.8 on an H200. The ways are weighed on a card alone.
_ONE_GRAPH = 2.5
_IN_STEP = 3.0
# What an operator and its derivatives hold at once, in tensors of the largest size.
_AT_WORK = 8
# How often what is carried in step goes to the host and back: values and tangents are
# put once, and fetched once on the way out and once on the way back.
_CARRIED = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeData:
    """The ways to a graph of all the data, weighed while the model is sheltered.

    Attributes:
        memory: What graphs take.
    """

    memory: GraphMemory

    def offloads(self) -> bool:
        """Say whether one graph on the host beats all else that fits."""
        if self.memory.prepared.device.type == "cpu":
            return False
        try:
            ways = self.ways()
            way = self._machine().cheapest(ways)
        except Exception:  # of a model or loss that takes no fewer than it was given
            return False
        return way is not None and way.name == "one graph on the host"

    def ways(self) -> list[Way]:
        """Return what each way takes."""
        batch, samples = self.memory.prepared.items[0], self.memory.samples
        few = min(4, samples_in(batch) or 1)
        saved, factor = self.memory.saved(few), samples / few
        whole, copied = int(factor * saved.bytes), self.memory.copied()
        found = [
            Way(
                name="one graph",
                gradients=_ONE_GRAPH,
                device_bytes=copied + (self.memory.tightly(samples) or 0),
            ),
            Way(
                name="one graph on the host",
                gradients=_ONE_GRAPH,
                device_bytes=copied + int(_AT_WORK * factor * saved.largest),
                host_bytes=whole,
                moved_bytes=int(factor * saved.fetched),
            ),
        ]
        return found + self._in_step(few, factor)

    def _in_step(self, few: int, factor: float) -> list[Way]:
        prepared = self.memory.prepared
        chunk = Chunk(data=slice_batch(prepared.items[0], 0, few))
        try:
            tensors = tensors_in(chunk.data)
            tape = record(lambda: prepared.run(chunk, check=False), tensors)
            cut = segments_of(tape)
        except NotOnTape:
            return []
        carried, adjoints = (int(factor * found) for found in carried_bytes(cut))
        largest = max(samples_in(item) or 0 for item in prepared.items)
        computed = computed_bytes(cut) * largest // few
        own = at_work(computed, self.memory.predict(largest))
        return [
            Way(
                name="in step",
                gradients=_IN_STEP,
                device_bytes=own + carried + adjoints,
            ),
            Way(
                name="in step on the host",
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
