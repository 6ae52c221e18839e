"""Blocks of an operator: rows and columns of some parameters."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError

from .combined import Combined
from .operator import Operator
from .vectors import Layout, places_of, sizes_of


class Block(Combined):
    """The part of an operator for some parameters, which shares its graphs.

    Args:
        whole: The operator.
        rows: Indices of the parameters along the rows; None for all rows.
        columns: Indices of the parameters along the columns; None for all columns.
    """

    def __init__(
        self,
        whole: Operator,
        rows: Sequence[int] | None,
        columns: Sequence[int] | None,
    ) -> None:
        super().__init__([whole])
        self.places = (rows, columns)
        height, self._row_layout = _cut(whole.shape[0], whole.row_layout, rows)
        width, self.layout = _cut(whole.shape[1], whole.layout, columns)
        self.shape = (height, width)
        self._settle()

    @property
    def row_layout(self) -> Layout:
        """Names and shapes of the parameters along the rows."""
        return self._row_layout

    def _apply(self, vectors: Tensor, *, many: bool = False) -> Tensor:
        whole, (rows, columns) = self.parts[0], self.places
        if not many:
            return whole._block_matvec(rows, columns, vectors)
        return torch.stack([self._apply(vector) for vector in vectors])

    @property
    def at_once(self) -> int:
        """One: products go through a part of the graph."""
        return 1

    def key(self, *, flipped: bool = False) -> Any:
        """Return how the operator is written, or its transpose."""
        sides = [None if one is None else tuple(one) for one in self.places]
        whole = self.parts[0].key(flipped=flipped)
        return whole, tuple(reversed(sides) if flipped else sides)

    def written(self, *, modes: bool = False) -> str:
        """Return the name of the whole."""
        return self.parts[0].written(modes=modes)

    def rebuilt(self, parts: Sequence[Operator]) -> Operator:
        """Return the same block of another operator."""
        return Block(parts[0], *self.places)

    @property
    def T(self) -> Operator:
        """The transpose: a block of the transpose."""
        if self.symmetric:
            return self
        return Block(self.parts[0].T, self.places[1], self.places[0])


def block_of(operator: Operator, key: Any) -> Operator:
    """Return the block of some parameters, by ``rows, columns`` or by one for both."""
    rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, key)
    chosen = (
        _places(operator.row_layout, rows, "rows"),
        _places(operator.layout, columns, "columns"),
    )
    return Block(operator, *chosen)


def _places(layout: Layout, key: Any, side: str) -> list[int] | None:
    """Return the indices of parameters; None for all of a side without names."""
    if layout:
        return places_of(layout, key)
    if isinstance(key, slice) and key == slice(None):
        return None
    raise MeasurementError(
        f"the {side} of the operator are no parameters, and {key!r} names some: pass "
        ": for all of them, as jacobian[:, '0.weight']"
    )


def _cut(size: int, layout: Layout, places: Sequence[int] | None) -> tuple[int, Layout]:
    """Return the size and the layout of a side that a block cuts."""
    if places is None:
        return size, layout
    chosen = tuple(layout[i] for i in places)
    return sum(sizes_of(chosen)), chosen
