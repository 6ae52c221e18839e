"""Inputs that reach the outputs of a sample, so that several share a cotangent."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from theodolite.core import stream
from theodolite.instruments.operators.block_jacobian import CHUNK, BlockJacobian

# Probes are taken where they are so many times fewer than the rows they may save.
_FEWER = 8
# In types that are coarser, sums of random numbers vanish by chance.
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
        numbers = torch.arange(prod(self.shape)).reshape(self.shape)
        positions = prod(self.shape[axis] for axis in self.axes)
        return numbers.permute([*self.axes, *rest]).reshape(positions, -1)

    @cached_property
    def classes(self) -> Tensor:
        """Number of each position's colours, (positions,)."""
        found = torch.zeros(1, dtype=torch.long)
        for colours in self.colours:
            count = int(colours.max()) + 1
            found = (found.unsqueeze(1) * count + colours).reshape(-1)
        return found

    @cached_property
    def windows(self) -> Tensor | None:
        """Inputs that reach each position, (positions, inputs); None for all."""
        found = None
        for places in self.reaching:
            both = places if found is None else found.unsqueeze(1) & places
            found = both.reshape(-1, places.shape[1])
        return found


def supports_of(jacobian: BlockJacobian, *, seed: int = 0) -> Supports:
    """Find the inputs that reach each place along each axis of a sample's output.

    A random cotangent at one place pulls back to zero just where no unit there depends
    on an input, in any sample, with probability one.
    """
    shape = jacobian.output_shape[1:]
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    probes = sum(shape[axis] for axis in axes)
    coarse = torch.finfo(jacobian.dtype).eps > _COARSEST
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
    """Return for each axis the inputs of a sample that reach a place along it."""
    samples, *shape = jacobian.output_shape
    drawn = stream(seed, "supports").standard_normal(jacobian.output_shape)
    noise = torch.as_tensor(drawn).to(dtype=jacobian.dtype, device=jacobian.device)
    places = [(axis, place) for axis in axes for place in range(shape[axis])]
    found = []
    for start in range(0, len(places), CHUNK):
        some = places[start : start + CHUNK]
        cotangents = noise.new_zeros(len(some), *noise.shape)
        for cotangent, (axis, place) in zip(cotangents, some, strict=True):
            part = noise.select(axis + 1, place)
            cotangent.select(axis + 1, place).copy_(part)
        pulled = jacobian.pull_back_block(cotangents.flatten(1))
        found.append(pulled.reshape(len(some), samples, -1).ne(0).any(1))
    return torch.cat(found).split([shape[axis] for axis in axes])


def _colours(reaching: Tensor) -> Tensor:
    """Give each place the first colour that no place before it with its inputs has."""
    counted = reaching.float()
    shared = (counted @ counted.T > 0).tolist()
    colours: list[int] = []
    for row in shared:
        taken = {colour for colour, both in zip(colours, row, strict=False) if both}
        colours.append(min(set(range(len(row))) - taken))
    return torch.tensor(colours)
