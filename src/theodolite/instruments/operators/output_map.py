"""The outputs of a model by its parameters, pushed forward and pulled back."""

from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.instruments.differentiate.derivatives import Map
from theodolite.instruments.differentiate.parts import Parts, add, zeros
from theodolite.instruments.norms.batch_norm_calls import BatchNormCalls, own_statistics
from theodolite.instruments.norms.full_statistics import FullStatistics
from theodolite.instruments.passes.graph_cache import GraphCache
from theodolite.instruments.passes.grouping import Chunk, Group
from theodolite.instruments.passes.prepared_model import PreparedModel


class OutputMap:
    """The linear map from parameters to outputs, chunk by chunk.

    Args:
        prepared: A model prepared to measure outputs.
        maps: Where maps are kept between products.
    """

    def __init__(self, prepared: PreparedModel, maps: GraphCache[Map]) -> None:
        self._prepared, self._maps = prepared, maps

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks, in the order of the data."""
        return [chunk for group in self._prepared.groups for chunk in group.chunks]

    def shapes(self) -> list[torch.Size]:
        """Return the shape of each chunk's outputs."""
        with self._prepared.session(), torch.no_grad():
            return [self._shape(chunk) for chunk in self.chunks]

    def push(self, tangents: Parts) -> list[tuple[Chunk, Tensor, Tensor]]:
        """Return each chunk with its outputs and their change; in a session."""
        found = []
        for group in self._prepared.groups:
            moved: Parts = []
            if group.statistics is not None:
                moved = group.statistics.tangent(self._prepared.leaves, tangents)
            for chunk in group.chunks:
                map_ = self.map(group, chunk)
                found.append((chunk, map_.outputs, map_.push([*tangents, *moved])))
        return found

    def pull(self, cotangents: Sequence[Tensor]) -> Parts:
        """Return the transpose's product with cotangents of all chunks."""
        leaves = self._prepared.leaves
        total, queue = zeros(leaves), iter(cotangents)
        for group in self._prepared.groups:
            given = {chunk: next(queue) for chunk in group.chunks}
            if group.statistics is None:
                chunk = group.chunks[0]
                add(total, self.map(group, chunk).pull(given[chunk]))
            else:
                add(total, self._through_moments(group.statistics, given))
        return total

    def _through_moments(
        self, statistics: FullStatistics, cotangents: dict[Chunk, Tensor]
    ) -> Parts:
        def source(chunk: Chunk, variables: Parts) -> tuple[Parts, Parts, Parts]:
            outputs, shares = statistics.forward(chunk, variables)
            return [outputs], [cotangents[chunk]], shares

        return statistics.pull(self._prepared.leaves, source)

    def map(self, group: Group, chunk: Chunk) -> Map:
        """Return a chunk's outputs by the leaves, then by the moments if shared."""
        return self._maps.graph(group, chunk, lambda: self._built(group, chunk))

    def _built(self, group: Group, chunk: Chunk) -> Map:
        if group.statistics is None:
            outputs = self._prepared.run(chunk)
            idle = not outputs.requires_grad and self._prepared.depends(chunk)
            return Map(outputs, self._prepared.leaves, constant=idle)
        variables = group.statistics.variables()
        outputs, _ = group.statistics.forward(chunk, variables)
        return Map(outputs, [*self._prepared.leaves, *variables])

    def _shape(self, chunk: Chunk) -> torch.Size:
        # Shapes do not hang on statistics, and a chunk may hold but one sample.
        with BatchNormCalls(own_statistics):
            return self._prepared.run(chunk).shape
