"""Which graphs fit in memory: joined data, graphs kept between products, or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..differentiate.parts import zeros
from ..norms.batch_norm_calls import BatchNormCalls, own_statistics
from ..norms.coupling import MemoryBudget
from . import forecast
from .batches import join_batches, samples_in, slice_batch, tensors_in
from .forecast import live_bytes
from .grouping import Chunk, Group
from .prepared_model import PreparedModel
from .streams import partition_of

# Share of the forecast from a graph's size that products take if counted one by one.
_AT_LEAST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphMemory:
    """Forecasts graph memory by extrapolating from a few samples, in ``sheltered``.

    Attributes:
        prepared: The model and its data.
        allowed: Bytes that graphs may take.
    """

    prepared: PreparedModel
    allowed: int

    def joined(self, *, offload: bool = False) -> object | None:
        """Return all data as one batch, if it can be joined and its graph fits.

        Args:
            offload: Whether to keep the graph on the host, where it fits.
        """
        wanted = self.tightly(self.samples)
        fits = wanted is not None and wanted + self.copied() <= self.allowed
        return join_batches(list(self.prepared.items)) if fits or offload else None

    @property
    def samples(self) -> int:
        """Number of samples of all the data that can be counted."""
        return sum(count or 0 for count in partition_of(self.prepared.items))

    @property
    def on_gpu(self) -> bool:
        """Whether tensors take nearly all of the memory, as on a GPU."""
        return self.prepared.device.type == "cuda"

    def decide(self, groups: Sequence[Group]) -> tuple[bool, int | None]:
        """Return whether the graphs of all chunks fit, and the bytes of the largest.

        Raises:
            MeasurementError: If the largest alone does not fit.
        """
        sizes = [chunk.samples or 0 for g in groups for chunk in g.chunks]
        if not sizes:
            return True, None  # only chunks of other ranks count
        coupled = any(group.coupled for group in groups)
        # Sequential chunks take more memory than their own products.
        largest = (self.predict if coupled else self.tightly)(max(sizes))
        if largest is None:
            return True, None
        forecast.refuse_beyond(
            largest,
            self.allowed,
            f"the graph of {max(sizes):,} samples",
            "pass micro_batch=… for fewer samples a pass, or raise graph_bytes",
        )
        return largest * sum(sizes) / max(sizes) <= self.allowed, largest

    def fits(self, samples: int) -> bool:
        """Return whether the graph of so many samples is known to fit."""
        wanted = self.predict(samples)
        return wanted is not None and wanted <= self.allowed

    def room(self, largest: int | None) -> MemoryBudget:
        """Return the memory for chunks that run in lockstep.

        Args:
            largest: Bytes of the largest chunk's graph.
        """
        host = 0
        if self.prepared.device.type != "cpu":
            host = forecast.budget(None, torch.device("cpu"))
        return MemoryBudget(device=self.allowed, host=host, graph=largest)

    def predict(self, samples: int) -> int | None:
        """Return the forecast bytes of a product; None if a batch cannot be split."""
        most = samples_in(self.prepared.items[0]) or 0
        if not samples or not most:
            return None

        def measure(count: int) -> int:
            return self.saved(count).bytes

        try:
            return forecast.predict_bytes(measure, samples, at_most=most)
        except Exception:  # the model or loss accepts no fewer samples
            return None

    def tightly(self, samples: int) -> int | None:
        """Return the same forecast, closer if that can decide whether it fits.

        On a GPU memory is what tensors take, so that those of a product of a few
        samples, all with their own statistics, are counted one by one.
        """
        wanted = self.predict(samples)
        if wanted is None or not self.on_gpu:
            return wanted
        if _AT_LEAST * wanted <= self.allowed < wanted:
            return min(wanted, self.counted(samples) or wanted)
        return wanted

    def counted(self, samples: int) -> int | None:
        """Forecast the same from tensors alive in a product of a few samples."""

        def alive(count: int) -> list[int]:
            chunk, known = self._few(count)
            still, walk = zeros(self.prepared.leaves), self.prepared.measured.walk
            return live_bytes(lambda: walk(self._grow(chunk), chunk, still), known)

        try:
            most = samples_in(self.prepared.items[0]) or 1
            return forecast.predict_peak(alive, samples, at_most=most)
        except Exception:  # the same error, or tensors of an unknown kind
            return None

    def saved(self, count: int) -> forecast.Saved:
        """Return the memory that the graph of a few samples keeps."""
        chunk, known = self._few(count)
        return forecast.saved_tensors(lambda: self._grow(chunk), known)

    def copied(self) -> int:
        """Return the bytes that batches take again when they are joined."""
        first = self.prepared.items[0]
        here = sum(tensor.nbytes for tensor in tensors_in(first))
        several = len(self.prepared.items) > 1
        return here * self.samples // (samples_in(first) or 1) if several else 0

    def _few(self, count: int) -> tuple[Chunk, list[Tensor]]:
        """Return a few samples, and the tensors that exist anyway."""
        batch, model = self.prepared.items[0], self.prepared.model
        known = [*model.parameters(), *model.buffers(), *tensors_in(batch)]
        return Chunk(data=slice_batch(batch, 0, count)), known

    def _grow(self, chunk: Chunk) -> Any:
        with BatchNormCalls(own_statistics):
            value = self.prepared.run(chunk, check=False)
        return self.prepared.measured.build(value, self.prepared.leaves)
