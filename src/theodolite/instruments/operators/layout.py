"""Flat vectors and the parameters along them, by name and shape."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError, unknown_name

from ..differentiate.derivatives import flat

# Name and shape of each parameter, in order.
Layout = tuple[tuple[str, tuple[int, ...]], ...]


def sizes_of(layout: Layout) -> list[int]:
    """Return how many numbers each parameter has."""
    return [prod(shape) for _, shape in layout]


def split(layout: Layout, vector: Tensor) -> dict[str, Tensor]:
    """Return a flat vector (n,), or columns (n, k), by names in the parameters' shapes.

    Columns are along the last axis of each part.
    """
    sizes = sizes_of(layout)
    if vector.ndim not in (1, 2) or len(vector) != sum(sizes):
        raise MeasurementError(
            f"a vector of shape {tuple(vector.shape)} came, wanted is "
            f"({sum(sizes)},), one number per parameter"
        )
    with torch._C.DisableTorchFunction():  # modes would be called for every part
        return {
            name: part.reshape((*shape, *vector.shape[1:]))
            for (name, shape), part in zip(layout, vector.split(sizes), strict=True)
        }


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
