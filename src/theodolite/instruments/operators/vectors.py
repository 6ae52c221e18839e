"""Flat vectors: parameters along them, random ones, and sums over long ones.

CPU kernels add float32 numbers one after the other: for 44 million Gaussian numbers the
norm was off by 0.3 %, and products with rows by 2 %, which is too much to make a basis
orthogonal. In blocks of 65,536 numbers both are right to 1e-6, in the same time. A GPU
sums in a tree, so its blocks may be longer. Matrix products on a GPU index in 32 bits:
rows beyond that are copied, some columns at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any, Protocol

import numpy as np
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


# Numbers that are added up in float32 on a processor and on a GPU.
_STRETCH, _ON_GPU = 2**16, 2**24
# Entries of a dot product that are converted to float64 at a time: 8 MiB.
_EXACT = 2**20
# Places that a GPU's products of matrices can tell apart.
_PLACES = 2**31 - 1
# Numbers that are checked together for NaN and infinity.
_SEEN = 2**26


def products(rows: Tensor, vector: Tensor) -> Tensor:
    """Return products of rows with a vector; in float64 where the vector is long."""
    width = _width(vector)
    if width is None and not _far(rows):
        return rows @ vector
    width = width or _ON_GPU
    total = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    pairs = zip(stretches(rows, width), vector.split(width), strict=True)
    for part, same in pairs:
        total += (part @ same).double()
    return total


def inner(rows: Tensor, others: Tensor) -> Tensor:
    """Return the products of rows with other rows, in float64."""
    width = _width(rows[0]) if len(rows) else None
    if width is None and not (_far(rows) or _far(others)):
        return (rows @ others.T).double()
    width = width or _ON_GPU
    total = rows.new_zeros(len(rows), len(others), dtype=torch.float64)
    pairs = zip(stretches(rows, width), stretches(others, width), strict=True)
    for part, same in pairs:
        total += (part @ same.T).double()
    return total


def take_out(vector: Tensor, rows: Tensor) -> Tensor:
    """Take the rows' components out of a vector, in place, and return them."""
    coefficients = products(rows, vector)
    if not _far(rows):
        vector -= rows.T @ coefficients.to(rows.dtype)
        return coefficients
    pairs = zip(stretches(rows, _ON_GPU), vector.split(_ON_GPU), strict=True)
    for part, same in pairs:
        same -= part.T @ coefficients.to(rows.dtype)
    return coefficients


def combined(weights: Tensor, rows: Tensor) -> Tensor:
    """Return weighted sums of rows, one for each row of weights."""
    if not _far(rows):
        return weights @ rows
    out = rows.new_empty(*weights.shape[:-1], rows.shape[1])
    pairs = zip(stretches(rows, _ON_GPU), out.split(_ON_GPU, dim=-1), strict=True)
    for part, same in pairs:
        same.copy_(weights @ part)
    return out


def stretches(rows: Tensor, width: int) -> Iterator[Tensor]:
    """Yield all rows of some columns at a time, sized for matrix products."""
    for part in rows.split(width, dim=1):
        yield part.contiguous() if _far(rows) else part


def norm(vector: Tensor) -> float:
    """Return the norm of a vector."""
    width = _width(vector)
    if width is None:
        return float(vector.norm())
    total = torch.zeros((), dtype=torch.float64, device=vector.device)
    for part in vector.split(width):
        total += part.norm().double().square()
    return float(total.sqrt())


def dot(first: Tensor, second: Tensor) -> float:
    """Return the dot product, summed in float64 block by block."""
    width = _ON_GPU if first.device.type == "cuda" else _EXACT
    if 0 < len(first) <= width:
        return float(first.double() @ second.double())
    pairs = zip(first.split(width), second.split(width), strict=True)
    parts = [a.double() @ b.double() for a, b in pairs]
    # Read back once: a GPU would be waited for at every stretch.
    return sum(torch.stack(parts).tolist()) if parts else 0.0


def squared_norm(vector: Tensor) -> float:
    """Return the squared norm, summed in float64 block by block."""
    if len(vector) <= _EXACT:
        return float(vector.double().square().sum())
    return dot(vector, vector)


def all_finite(vector: Tensor) -> bool:
    """Return whether a vector holds neither NaN nor infinity, block by block."""
    parts = (vector,) if len(vector) <= _SEEN else vector.split(_SEEN)
    return all(bool(torch.isfinite(part).all()) for part in parts)


def _far(rows: Tensor) -> bool:
    """Return whether rows exceed the 32-bit indices of matrix products on a GPU."""
    return rows.device.type == "cuda" and len(rows) * rows.shape[1] > _PLACES


def _width(vector: Tensor) -> int | None:
    """Return the block length for a vector, None if it is not split."""
    width = _ON_GPU if vector.device.type == "cuda" else _STRETCH
    short = len(vector) <= width or vector.dtype == torch.float64
    return None if short else width


# Numbers drawn in float64 at a time, before they are rounded and moved: 8 MiB.
_DRAW = 2**20
# From _LONG numbers on, every _APART of them use another generator, so that threads can
# draw them: a billion from one generator take 15 seconds.
_LONG, _APART = 2**27, 2**24


class VectorSpace(Protocol):
    """What random vectors are drawn for: an operator."""

    shape: tuple[int, int]
    torch_dtype: torch.dtype
    device: torch.device


def normal_vector(like: VectorSpace, generator: np.random.Generator) -> Tensor:
    """Return a standard normal vector for the operator.

    Up to 134 million numbers are those of one draw, the same on every device. More are
    the same for every number of threads; a GPU draws others.
    """
    vector = _empty(like)
    if len(vector) < _LONG:
        _fill(vector, generator)
        return vector
    if vector.device.type == "cuda":
        return vector.normal_(generator=_gpu_generator(vector, generator))
    parts = vector.split(_APART)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(_fill, parts, generator.spawn(len(parts))))
    return vector


def sign_vector(like: VectorSpace, generator: np.random.Generator) -> Tensor:
    """Return random signs for the operator; a GPU draws a long vector itself."""
    vector = _empty(like)
    if len(vector) >= _LONG and vector.device.type == "cuda":
        made = _gpu_generator(vector, generator)
        return vector.bernoulli_(0.5, generator=made).mul_(2).sub_(1)
    for part in vector.split(_DRAW):
        drawn = generator.integers(0, 2, len(part)) * 2.0 - 1.0
        part.copy_(torch.from_numpy(drawn).to(part.dtype))
    return vector


def _empty(like: VectorSpace) -> Tensor:
    return torch.empty(like.shape[1], dtype=like.torch_dtype, device=like.device)


def _gpu_generator(vector: Tensor, generator: np.random.Generator) -> torch.Generator:
    """Return a generator on a GPU, seeded by another."""
    seed = int(generator.integers(2**63 - 1))
    return torch.Generator(vector.device).manual_seed(seed)


def _fill(vector: Tensor, generator: np.random.Generator) -> None:
    for part in vector.split(_DRAW):
        drawn = torch.from_numpy(generator.standard_normal(len(part)))
        part.copy_(drawn.to(part.dtype))
