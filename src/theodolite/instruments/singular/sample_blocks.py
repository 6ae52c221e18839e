"""Jacobians of single samples, from few cotangents.

Outputs that depend on different inputs share a cotangent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from theodolite.core import MeasurementError, stream

from ..operators.block_jacobian import CHUNK, BlockJacobian

# Probes are used if they are so many times fewer than the rows they may save.
_FEWER = 8
# In lower precision, sums of random numbers vanish by chance.
_COARSEST = 1e-6


@dataclass(frozen=True, eq=False)
class Supports:
    """Inputs that the output units of a sample depend on, bounded axis by axis.

    A position is a place along each of some axes. A unit depends on no inputs but those
    that reach its place along all of these: a window, in convolutions. Two places along
    an axis have the same colour only if no input reaches both, so that positions of the
    same colours have no input in common.

    Attributes:
        shape: Of one sample's output.
        axes: Axes along which some places have the same colour.
        reaching: For each of these the inputs that reach a place, (places, inputs).
        colours: For each of these the colour of a place, (places,).
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()
    reaching: tuple[Tensor, ...] = ()
    colours: tuple[Tensor, ...] = ()

    @cached_property
    def order(self) -> Tensor:
        """Numbers of all units, (positions, units at one)."""
        rest = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        numbers = torch.arange(prod(self.shape), device="cpu").reshape(self.shape)
        positions = prod(self.shape[axis] for axis in self.axes)
        return numbers.permute([*self.axes, *rest]).reshape(positions, -1)

    @cached_property
    def classes(self) -> Tensor:
        """Number of each position's colours, (positions,)."""
        classes = torch.zeros(1, dtype=torch.long, device="cpu")
        for colours in self.colours:
            count = int(colours.max()) + 1
            classes = (classes.unsqueeze(1) * count + colours).reshape(-1)
        return classes

    @cached_property
    def windows(self) -> Tensor | None:
        """Inputs that reach each position, (positions, inputs); None for all."""
        windows = None
        for places in self.reaching:
            both = places if windows is None else windows.unsqueeze(1) & places
            windows = both.reshape(-1, places.shape[1])
        return windows


def supports_of(jacobian: BlockJacobian, *, seed: int = 0) -> Supports:
    """Find the inputs that reach each place along each axis of a sample's output.

    A random cotangent at one place pulls back to zero just where no unit there depends
    on an input, in any sample, with probability one.
    """
    shape = jacobian.output_shape[1:]
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    probes = sum(shape[axis] for axis in axes)
    coarse = torch.finfo(jacobian.torch_dtype).eps > _COARSEST
    if coarse or not axes or _FEWER * probes > prod(shape):
        return Supports(shape)
    reaching = dict(zip(axes, _reaching(jacobian, axes, seed), strict=True))
    colours = {axis: _colours(places) for axis, places in reaching.items()}
    told = tuple(axis for axis in axes if int(colours[axis].max()) + 1 < shape[axis])
    return Supports(
        shape,
        told,
        tuple(reaching[axis] for axis in told),
        tuple(colours[axis] for axis in told),
    )


def _reaching(
    jacobian: BlockJacobian, axes: list[int], seed: int
) -> tuple[Tensor, ...]:
    """Return, for each axis, the inputs of a sample that reach each place along it."""
    samples, *shape = jacobian.output_shape
    drawn = stream(seed, "supports").standard_normal(jacobian.output_shape)
    noise = torch.from_numpy(drawn).to(
        dtype=jacobian.torch_dtype, device=jacobian.device
    )
    places = [(axis, place) for axis in axes for place in range(shape[axis])]
    reached = []
    for start in range(0, len(places), CHUNK):
        some = places[start : start + CHUNK]
        cotangents = noise.new_zeros(len(some), *noise.shape)
        for cotangent, (axis, place) in zip(cotangents, some, strict=True):
            part = noise.select(axis + 1, place)
            cotangent.select(axis + 1, place).copy_(part)
        pulled = jacobian.pull_back_block(cotangents.flatten(1))
        reached.append(pulled.reshape(len(some), samples, -1).ne(0).any(1))
    return torch.cat(reached).split([shape[axis] for axis in axes])


def _colours(reaching: Tensor) -> Tensor:
    """Give each place the first colour that no place before it with its inputs has."""
    counted = reaching.float()
    shared = (counted @ counted.T > 0).tolist()
    colours: list[int] = []
    for row in shared:
        taken = {colour for colour, both in zip(colours, row, strict=False) if both}
        colours.append(min(set(range(len(row))) - taken))
    return torch.tensor(colours, device="cpu")


@dataclass(frozen=True, eq=False)
class SampleBlocks:
    """Rows of every sample's Jacobian; those without an input in common share a vector.

    Units are in the order of ``supports``, position by position.

    Attributes:
        supports: What reaches which units.
        packed: Vectors pulled back, (samples, vectors, inputs of a sample).
        columns: Numbers of the inputs in the order they have here, in which those of
            near positions stand together.
        wanted: Whether a unit's row is among them, (samples, positions, units at one).
        slots: Which vector it lies in, (samples, positions, units at one).
    """

    supports: Supports
    packed: Tensor
    columns: Tensor
    wanted: Tensor
    slots: Tensor

    def matrices(self, vectors: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield each sample's Jacobian in float64, its rows' numbers, and a product.

        Each is written over the one before it: fresh memory for every one took four
        times as long.

        Args:
            vectors: What to multiply the Jacobians with, one per sample.
        """
        order, windows = self.supports.order.to(self.slots), self.supports.windows
        if windows is not None:
            windows = windows[:, self.columns].to(self.packed)
        height, width = int(self.wanted.sum((1, 2)).max()), len(self.columns)
        matrix = self.packed.new_empty(height, width, dtype=torch.float64)
        products = self.packed.new_empty(height)
        for packed, wanted, slots, vector in zip(
            self.packed, self.wanted, self.slots, vectors[:, self.columns], strict=True
        ):
            position, unit = wanted.nonzero(as_tuple=True)
            places = slots[position, unit]
            for start in range(0, len(places), CHUNK):
                some = slice(start, start + CHUNK)
                rows = packed.index_select(0, places[some])
                if windows is not None:
                    rows.mul_(windows.index_select(0, position[some]))
                filled = slice(start, start + len(rows))
                torch.mv(rows, vector, out=products[filled])
                matrix[filled] = rows
            count = len(places)
            yield matrix[:count], order[position, unit], products[:count]


def sample_blocks(
    jacobian: BlockJacobian, supports: Supports, rows: Tensor | None = None
) -> SampleBlocks:
    """Pull back the rows of a mask, all by default, of each sample's own Jacobian.

    One cotangent holds units of every sample at once, and of positions that have no
    input in common.
    """
    if jacobian.coupled:
        raise MeasurementError(
            "per-sample blocks of a coupled Jacobian were asked for: make it with "
            "coupled=False"
        )
    samples, inputs = jacobian.samples, jacobian.input_shape[1:]
    if rows is None:
        rows = torch.ones(jacobian.shape[0], dtype=torch.bool, device=jacobian.device)
    wanted = rows.reshape(samples, -1)[:, supports.order.to(rows.device)]
    slots, count = _slots(wanted, supports.classes.to(rows.device))
    axes = _arrangement(supports, inputs)
    packed = torch.empty(
        (samples, count, *(inputs[axis] for axis in axes)),
        dtype=jacobian.torch_dtype,
        device=jacobian.device,
    )
    for start in range(0, count, CHUNK):
        some = _cotangents(wanted, slots, supports, range(count)[start:][:CHUNK])
        pulled = jacobian.pull_back_block(some.to(packed.dtype).flatten(1))
        pulled = pulled.reshape(-1, samples, *inputs).movedim(1, 0)
        arranged = pulled.permute(0, 1, *(axis + 2 for axis in axes))
        packed[:, start : start + CHUNK] = arranged
    columns = torch.arange(prod(inputs), device=rows.device).reshape(inputs)
    columns = columns.permute(axes).reshape(-1)
    return SampleBlocks(supports, packed.flatten(2), columns, wanted, slots)


def _cotangents(
    wanted: Tensor, slots: Tensor, supports: Supports, vectors: range
) -> Tensor:
    """Return masks of the units in some vectors, (vectors, samples, units)."""
    order = supports.order.to(slots)
    cotangents = torch.zeros(
        len(vectors), len(slots), order.numel(), dtype=torch.bool, device=slots.device
    )
    here = wanted & (slots >= vectors.start) & (slots < vectors.stop)
    sample, position, unit = here.nonzero(as_tuple=True)
    cotangents[slots[here] - vectors.start, sample, order[position, unit]] = True
    return cotangents


def _slots(wanted: Tensor, classes: Tensor) -> tuple[Tensor, int]:
    """Number the vectors: a class of positions has as many as its fullest one."""
    samples, count = len(wanted), int(classes.max()) + 1
    filled = wanted.sum(2)
    fullest = filled.new_zeros(samples, count).scatter_reduce(
        1, classes.expand(samples, -1), filled, "amax"
    )
    ends = fullest.cumsum(1)
    starts = (ends - fullest)[:, classes].unsqueeze(2)
    return (starts + wanted.cumsum(2) - 1).clamp_min(0), int(ends[:, -1].max())


def _arrangement(supports: Supports, inputs: tuple[int, ...]) -> tuple[int, ...]:
    """Order the axes of the inputs: first those along which windows begin and end."""
    axes = tuple(range(len(inputs)))
    if supports.windows is None:
        return axes
    windows = supports.windows.reshape(-1, *inputs)
    cut = [
        bool((windows.any(axis + 1) != windows.all(axis + 1)).any()) for axis in axes
    ]
    return tuple(sorted(axes, key=lambda axis: not cut[axis]))
