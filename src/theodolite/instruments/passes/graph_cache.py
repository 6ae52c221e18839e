"""Graphs that are built once and walked by many products."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Generic, TypeVar

from torch import Tensor

from ..norms.tensor_store import offloaded
from .grouping import Chunk, Group

Graph = TypeVar("Graph")


class GraphCache(Generic[Graph]):
    """What products share, until the model changes or the memory is wanted back.

    Args:
        retain: Whether the graphs of all chunks fit in memory together.
        offload: Whether their tensors lie on the host.
        staying: Tensors that exist anyway, such as parameters.
    """

    def __init__(
        self, *, retain: bool, offload: bool = False, staying: Sequence[Tensor] = ()
    ) -> None:
        self._retain, self.offload, self._staying = retain, offload, staying
        self._graphs: dict[Chunk, Graph] = {}

    def keeps(self, groups: Iterable[Group]) -> bool:
        """Whether the graphs of all these groups are kept once they are built."""
        return self._retain and not any(group.coupled for group in groups)

    def graph(self, group: Group, chunk: Chunk, build: Callable[[], Graph]) -> Graph:
        """Return a chunk's graph, built if it is not there.

        Where batch statistics run over several chunks, graphs are never kept: those
        groups are cut since their graphs do not fit.
        """
        if chunk in self._graphs:
            return self._graphs[chunk]
        with offloaded(self._staying) if self.offload else nullcontext():
            graph = build()
        if self._retain and not group.coupled:
            self._graphs[chunk] = graph
        return graph

    def kept(self, chunk: Chunk) -> Graph | None:
        """Return a chunk's graph if it is there."""
        return self._graphs.get(chunk)

    def __len__(self) -> int:
        """Count the graphs that are held."""
        return len(self._graphs)

    def clear(self) -> None:
        """Let everything go."""
        self._graphs.clear()
