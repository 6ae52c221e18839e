"""Jacobians of single samples, from as few cotangents as tell their rows apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from theodolite.core import MeasurementError
from theodolite.instruments.operators.block_jacobian import CHUNK, BlockJacobian
from theodolite.instruments.singular.supports import Supports


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
            vectors: What to multiply the Jacobians with, one a sample.
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
        dtype=jacobian.dtype,
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
    found = torch.zeros(
        len(vectors), len(slots), order.numel(), dtype=torch.bool, device=slots.device
    )
    here = wanted & (slots >= vectors.start) & (slots < vectors.stop)
    sample, position, unit = here.nonzero(as_tuple=True)
    found[slots[here] - vectors.start, sample, order[position, unit]] = True
    return found


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
