"""The outputs of a model by its parameters, pushed forward and pulled back."""

from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.instruments.differentiate.derivatives import Map, Parts, add, zeros
from theodolite.instruments.norms.batch_norm_calls import BatchNormCalls, own_statistics
from theodolite.instruments.norms.full_statistics import FullStatistics
from theodolite.instruments.passes.grouping import Chunk, Group
from theodolite.instruments.passes.stage import Stage


class OutputMap:
    """The linear map from parameters to outputs, chunk by chunk.

    Args:
        stage: A set-up that measures outputs.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks, in the order of the data."""
        return [chunk for group in self._stage.groups for chunk in group.chunks]

    def shapes(self) -> list[torch.Size]:
        """Return the shape of each chunk's outputs."""
        with self._stage.session(), torch.no_grad():
            return [self._shape(chunk) for chunk in self.chunks]

    def push(self, tangents: Parts) -> list[tuple[Chunk, Tensor, Tensor]]:
        """Return each chunk with its outputs and their change; in a session."""
        found = []
        for group in self._stage.groups:
            moved: Parts = []
            if group.statistics is not None:
                moved = group.statistics.tangent(self._stage.leaves, tangents)
            for chunk in group.chunks:
                map_ = self.map(group, chunk)
                found.append((chunk, map_.outputs, map_.push([*tangents, *moved])))
        return found

    def pull(self, cotangents: Sequence[Tensor]) -> Parts:
        """Return the transpose's product with cotangents of all chunks."""
        leaves = self._stage.leaves
        total, queue = zeros(leaves), iter(cotangents)
        for group in self._stage.groups:
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

        return statistics.pull(self._stage.leaves, source)

    def map(self, group: Group, chunk: Chunk) -> Map:
        """Return a chunk's outputs by the leaves, then by the moments if shared."""
        if chunk in self._stage.kept:
            return self._stage.kept[chunk]
        if group.statistics is None:
            found = Map(self._stage.run(chunk), self._stage.leaves)
        else:
            variables = group.statistics.variables()
            outputs, _ = group.statistics.forward(chunk, variables)
            found = Map(outputs, [*self._stage.leaves, *variables])
        if self._stage.retain and not group.coupled:
            self._stage.kept[chunk] = found
        return found

    def _shape(self, chunk: Chunk) -> torch.Size:
        # Shapes do not hang on statistics, and a chunk may hold but one sample.
        with BatchNormCalls(own_statistics):
            return self._stage.run(chunk).shape
