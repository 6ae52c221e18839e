"""The outputs of a model by its parameters, pushed forward and pulled back."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from theodolite.instruments.differentiate.derivatives import Map
from theodolite.instruments.differentiate.parts import Parts, add, zeros
from theodolite.instruments.norms.batch_norm_calls import BatchNormCalls, own_statistics
from theodolite.instruments.passes.graph_cache import GraphCache
from theodolite.instruments.passes.grouping import Chunk, Group
from theodolite.instruments.passes.prepared_model import PreparedModel

Between = Callable[[Chunk, Tensor, Tensor], Tensor]


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
            pushed = zip(group.chunks, self._pushed(group, tangents), strict=True)
            found += [(chunk, *pair) for chunk, pair in pushed]
        return found

    def _pushed(self, group: Group, tangents: Parts) -> list[tuple[Tensor, Tensor]]:
        if group.coupled:
            return group.joint.push(tangents)
        map_ = self.map(group, group.chunks[0])
        return [(map_.outputs, map_.push(tangents))]

    def through(self, tangents: Parts, between: Between) -> Parts:
        """Push forwards, change what comes and pull it back, one group at a time.

        So that a graph that is not kept is built once, and no more than the outputs of
        one group are held.

        Args:
            tangents: One for each leaf.
            between: Makes a cotangent of a chunk, its outputs and their change.
        """
        total = zeros(self._prepared.leaves)
        for group in self._prepared.groups:
            add(total, self._through(group, tangents, between))
        return total

    def _through(self, group: Group, tangents: Parts, between: Between) -> Parts:
        # Of its own, so that a graph is gone before the next is built.
        if group.coupled:
            pushed = zip(group.chunks, group.joint.push(tangents), strict=True)
            return group.joint.pull([between(chunk, *pair) for chunk, pair in pushed])
        chunk = group.chunks[0]
        map_ = self.map(group, chunk)
        return map_.pull(between(chunk, map_.outputs, map_.push(tangents)))

    def pull(self, cotangents: Sequence[Tensor]) -> Parts:
        """Return the transpose's product with cotangents of all chunks."""
        total, queue = zeros(self._prepared.leaves), iter(cotangents)
        for group in self._prepared.groups:
            given = [next(queue) for _ in group.chunks]
            if group.coupled:
                add(total, group.joint.pull(given))
            else:
                add(total, self.map(group, group.chunks[0]).pull(given[0]))
        return total

    def outputs(self) -> Parts:
        """Return each chunk's outputs; in a session."""
        found: Parts = []
        for group in self._prepared.groups:
            if group.coupled:
                found += group.joint.outputs()
            else:
                found.append(self.map(group, group.chunks[0]).outputs)
        return found

    def map(self, group: Group, chunk: Chunk) -> Map:
        """Return a chunk's outputs by the leaves, where it shares no moments."""
        return self._maps.graph(group, chunk, lambda: self._built(chunk))

    def _built(self, chunk: Chunk) -> Map:
        outputs = self._prepared.run(chunk)
        idle = not outputs.requires_grad and self._prepared.depends(chunk)
        map_ = Map(outputs, self._prepared.leaves, constant=idle)
        return map_.prepare() if self._maps.offload else map_

    def _shape(self, chunk: Chunk) -> torch.Size:
        # Shapes do not hang on statistics, and a chunk may hold but one sample.
        with BatchNormCalls(own_statistics):
            return self._prepared.run(chunk).shape
