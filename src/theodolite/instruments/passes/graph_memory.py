"""Which graphs fit in memory: joined data, graphs kept between products, or none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core import MeasurementError
from theodolite.instruments.norms.batch_norm_calls import (
    BatchNormCalls,
    own_statistics,
)
from theodolite.instruments.norms.coupling import Room
from theodolite.instruments.passes import forecast
from theodolite.instruments.passes.batches import (
    join_batches,
    samples_in,
    slice_batch,
    tensors_in,
)
from theodolite.instruments.passes.grouping import Chunk, Group
from theodolite.instruments.passes.prepared_model import PreparedModel
from theodolite.instruments.passes.streams import partition_of

Build = Callable[[Tensor, Sequence[Tensor]], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphMemory:
    """Forecasts graphs of a model by growing a few samples' while it is sheltered.

    Attributes:
        prepared: The model and its data.
        build: Builds, of what was measured and the leaves, what products need.
        allowed: Bytes that graphs may take.
    """

    prepared: PreparedModel
    build: Build
    allowed: int

    def joined(self, *, offload: bool = False) -> object | None:
        """Return all data as one batch, if it can be joined and its graph fits.

        Args:
            offload: Whether the graph is to lie on the host, where it does fit.
        """
        wanted = self.predict(self.samples)
        fits = wanted is not None and wanted <= self.allowed
        return join_batches(list(self.prepared.items)) if fits or offload else None

    @property
    def samples(self) -> int:
        """Samples of all the data, as far as they can be counted."""
        return sum(count or 0 for count in partition_of(self.prepared.items))

    def decide(self, groups: Sequence[Group]) -> tuple[bool, int | None]:
        """Return whether the graphs of all chunks fit, and the bytes of the largest.

        Raises:
            MeasurementError: If the largest alone does not fit.
        """
        sizes = [chunk.samples or 0 for g in groups for chunk in g.chunks]
        if not sizes:
            return True, None  # only what other ranks hold counts
        largest = self.predict(max(sizes))
        if largest is None:
            return True, None
        forecast.refuse_beyond(
            largest,
            self.allowed,
            f"the graph of {max(sizes):,} samples",
            "pass micro_batch=… for fewer samples a pass, or raise graph_bytes",
        )
        return largest * sum(sizes) / max(sizes) <= self.allowed, largest

    def room(self, largest: int | None) -> Room:
        """Return the memory there is for chunks that go from norm to norm.

        Args:
            largest: Bytes of the largest chunk's graph.
        """
        host = 0
        if self.prepared.device.type != "cpu":
            host = forecast.budget(None, torch.device("cpu"))
        return Room(device=self.allowed, host=host, graph=largest)

    def predict(self, samples: int) -> int | None:
        """Forecast the bytes of a graph; None where a batch cannot be cut."""
        batch = self.prepared.items[0]
        if not samples or not samples_in(batch):
            return None

        def measure(count: int) -> int:
            return self.saved(count).bytes

        try:
            return forecast.predict_bytes(
                measure, samples, at_most=samples_in(batch) or 1
            )
        except (RuntimeError, ValueError, MeasurementError):
            return None  # a model that takes no fewer samples than it was given

    def saved(self, count: int) -> forecast.Saved:
        """Count what the graph of a few samples keeps."""
        batch, model = self.prepared.items[0], self.prepared.model
        known = [*model.parameters(), *model.buffers(), *tensors_in(batch)]
        chunk = Chunk(data=slice_batch(batch, 0, count))
        return forecast.saved_tensors(lambda: self._grow(chunk), known)

    def _grow(self, chunk: Chunk) -> object:
        with BatchNormCalls(own_statistics):
            value = self.prepared.run(chunk, check=False)
        return self.build(value, self.prepared.leaves)
