"""Graphs that are built once and walked by many products."""

from collections.abc import Callable
from typing import Generic, TypeVar

from theodolite.instruments.differentiate.parts import Parts
from theodolite.instruments.passes.grouping import Chunk, Group

Graph = TypeVar("Graph")


class GraphCache(Generic[Graph]):
    """What products share, until the model changes or the memory is wanted back.

    Args:
        retain: Whether the graphs of all chunks fit in memory together.
    """

    def __init__(self, *, retain: bool) -> None:
        self._retain = retain
        self._graphs: dict[Chunk, Graph] = {}
        self._multipliers: dict[Group, Parts] = {}

    def graph(self, group: Group, chunk: Chunk, build: Callable[[], Graph]) -> Graph:
        """Return a chunk's graph, built if it is not there.

        Where batch statistics run over several chunks, graphs are never kept: those
        groups are cut since their graphs do not fit.
        """
        if chunk in self._graphs:
            return self._graphs[chunk]
        found = build()
        if self._retain and not group.coupled:
            self._graphs[chunk] = found
        return found

    def kept(self, chunk: Chunk) -> Graph | None:
        """Return a chunk's graph if it is there."""
        return self._graphs.get(chunk)

    def multipliers(self, group: Group, solve: Callable[[], Parts]) -> Parts:
        """Return the multipliers of a group's moments, solved for if not known."""
        if group not in self._multipliers:
            self._multipliers[group] = solve()
        return self._multipliers[group]

    def __len__(self) -> int:
        """Count the graphs that are held."""
        return len(self._graphs)

    def clear(self) -> None:
        """Let everything go."""
        self._graphs.clear()
        self._multipliers.clear()
