"""Blocks of an operator by the names of parameters, and vectors made of their parts."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError, unknown_name

from ..differentiate.derivatives import Layout, flat, sizes_of
from .combined import Combined
from .operator import Operator


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


def join(
    layout: Layout, parts: Any, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return the flat vector of parts by name or in order, or columns of it.

    Args:
        layout: Names and shapes.
        parts: A mapping, in which missing parts are zero, or a sequence of all parts.
            Each has its parameter's shape, or all have one more axis of columns.
        dtype: Type of the result.
        device: Its device.
    """
    named = _named(layout, parts)
    shapes = dict(layout)
    extra = {part.ndim - len(shapes[name]) for name, part in named.items()}
    tails = {tuple(p.shape[len(shapes[name]) :]) for name, p in named.items()}
    for name, part in named.items():
        fits = tuple(part.shape[: len(shapes[name])]) == shapes[name]
        if not fits or not extra <= {0, 1} or len(tails) > 1:
            raise MeasurementError(
                f"{name} has shape {shapes[name]}, and {tuple(part.shape)} came: pass "
                "tensors in the parameters' shapes, or all with one more axis"
            )
    tail = tails.pop() if tails else ()
    empty = torch.zeros((), dtype=dtype, device=device)
    return torch.cat(
        [
            named.get(name, empty.expand((*shape, *tail))).reshape(-1, *tail).to(empty)
            for name, shape in layout
        ]
    )


def _named(layout: Layout, parts: Any) -> dict[str, Tensor]:
    """Return parts by name, or refuse what does not fit the parameters."""
    names = [name for name, _ in layout]
    if not isinstance(parts, Mapping):
        if len(parts) != len(names):
            raise MeasurementError(
                f"a {type(parts).__name__} of {len(parts)} parts came, wanted are "
                f"{len(names)} tensors, one for each parameter of the columns"
                + ("" if names else ", which have no parameters: pass a flat vector")
            )
        parts = dict(zip(names, parts, strict=True))
    for name, part in parts.items():
        if name not in names:
            raise unknown_name("parameter", name, names)
        if not isinstance(part, Tensor):
            raise MeasurementError(
                f"{name} came as a {type(part).__name__}: pass tensors in the shapes "
                "of the parameters, or a flat array"
            )
    return dict(parts)


def places_of(layout: Layout, names: Any) -> list[int]:
    """Return the indices of parameters by a name, a list of names, or ``:`` for all."""
    known = [name for name, _ in layout]
    if isinstance(names, slice) and names == slice(None):
        return list(range(len(known)))
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, Sequence):
        raise MeasurementError(
            f"a block is named by {type(names).__name__}: pass names of parameters, as "
            "operator['0.weight', ['1.weight', '1.bias']], or : for all"
        )
    for name in names:
        if name not in known:
            raise unknown_name("parameter", str(name), known)
    if not names or len(set(names)) < len(names):
        raise MeasurementError("a block names each parameter once, and at least one")
    return [known.index(name) for name in names]


def embedded(layout: Layout, places: Sequence[int], vector: Tensor) -> Tensor:
    """Return a block's vector, with zeros for all other parameters."""
    sizes = sizes_of(layout)
    cut = vector.split([sizes[i] for i in places])
    parts = dict(zip(places, cut, strict=True))
    return torch.cat(
        [
            parts[i] if i in parts else vector.new_zeros(size)
            for i, size in enumerate(sizes)
        ]
    )


def extracted(layout: Layout, places: Sequence[int], vector: Tensor) -> Tensor:
    """Return the numbers of some parameters out of those of all."""
    parts = vector.split(sizes_of(layout))
    return flat([parts[i] for i in places])
