"""Losses and gradients of a stack of narrow networks by one kernel of CUDA C."""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from theodolite.core import ShortcutBlueprint

from .nvrtc import CudaProgram
from .passes import Samples, even_part_size

WARP = 32
# Needed for asynchronous copies, and for a maximum that keeps NaN.
_CAPABILITY = (8, 0)
_THREADS_OF_SUMS = 128
_HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How blocks are laid out."""

    samples_per_thread: int  # samples per thread
    resident_blocks: (
        int  # blocks that a multiprocessor should hold; bounds their registers
    )

    @property
    def block(self) -> int:
        """Samples a block carries at once."""
        return WARP * self.samples_per_thread


LAYOUT = Layout(samples_per_thread=4, resident_blocks=16)
# Products are written out entry by entry: for wider ones the program is too long.
_WIDTH = 12
# With more matrices per unit, recomputing them costs more than it saves.
_MATRICES = 3
# Kernels count entries in 32 bits.
_ENTRIES = 2**31


def even_width(blueprint: ShortcutBlueprint) -> int:
    """Return the width that the kernel uses: odd widths get a column of zeros.

    Example:
        >>> even_width(ShortcutBlueprint(width=5, depth=2))
        6
    """
    return blueprint.width + blueprint.width % 2


def source(blueprint: ShortcutBlueprint, layout: Layout = LAYOUT) -> str:
    """Return the kernels of a blueprint in CUDA C; :func:`primitives` come before."""
    defined = {
        "WIDTH": even_width(blueprint),
        "SHORTCUT": blueprint.shortcut,
        "SKIP": int(blueprint.skip),
        "RELU": int(not blueprint.linear),
        "EACH": layout.samples_per_thread,
        "RESIDENT": layout.resident_blocks,
    }
    lines = [f"#define {name} {value}" for name, value in defined.items()]
    return "\n".join([*lines, (_HERE / "cuda_kernel.cu").read_text()])


def primitives() -> str:
    """Return the device functions that the kernels call."""
    return (_HERE / "primitives.cu").read_text()


class Kernels:
    """Both kernels, compiled for the current device.

    Args:
        text: What :func:`source` returned.

    Attributes:
        passes: Writes every share's squared error and gradient.
        sums: Sums the shares of every point.
        blocks: How many blocks of the first the device holds at once.
    """

    def __init__(self, text: str) -> None:
        program = CudaProgram(primitives() + text)
        self.passes = program.kernel("lanes", WARP)
        self.sums = program.kernel("sum_shares", _THREADS_OF_SUMS)
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.blocks = device.multi_processor_count * self.passes.resident_blocks()


def kernels(text: str, device: torch.device) -> Kernels:
    """Return the kernels of :func:`source`, compiled once per device."""
    # A device without an index is the current one, which may change.
    index = torch.cuda.current_device() if device.index is None else device.index
    return _kernels_of(text, index)


@cache
def _kernels_of(text: str, index: int) -> Kernels:
    with torch.cuda.device(index):
        return Kernels(text)


def unsupported_reason(
    blueprint: ShortcutBlueprint,
    samples: int,
    dtype: torch.dtype,
    device: torch.device,
) -> str | None:
    """Return what the kernel cannot take, None if nothing; compiles nothing."""
    if dtype != torch.float32:
        return f"{str(dtype).removeprefix('torch.')}"
    if blueprint.width > _WIDTH:
        return f"width {blueprint.width}, only up to {_WIDTH}"
    if blueprint.shortcut > _MATRICES:
        return f"shortcut {blueprint.shortcut}, only up to {_MATRICES}"
    if (samples + LAYOUT.block) * blueprint.width >= _ENTRIES:
        return f"{samples} samples of width {blueprint.width} at once"
    if device.type != "cuda":
        return f"device {device}, only CUDA devices"
    if torch.version.cuda is None:
        return "this build of torch, only those for CUDA"
    if torch.cuda.get_device_capability(device) < _CAPABILITY:
        return f"{torch.cuda.get_device_name(device)}, only compute capability 8.0 on"
    return None


class CudaPasses:
    """Losses and gradients of one blueprint by the CUDA kernel, and their memory.

    Takes the arguments of :class:`TorchPasses`; ``memory`` bounds the buffers of a
    stack.
    """

    label = "cuda"

    def __init__(
        self,
        blueprint: ShortcutBlueprint,
        samples: Samples,
        *,
        dtype: torch.dtype,
        device: torch.device,
        memory: int,
    ) -> None:
        self.blueprint, self.memory = blueprint, memory
        self.scale, self.constant = samples.scale, samples.constant
        self.tiles = math.ceil(len(samples.x) / LAYOUT.block)
        self.wide = even_width(blueprint)
        shape = (self.wide, self.tiles * LAYOUT.block)
        self.x, self.y = torch.zeros(2, *shape, dtype=dtype, device=device)
        for filled, given in ((self.x, samples.x), (self.y, samples.y)):
            columns = torch.as_tensor(given, dtype=dtype, device=device).mT
            filled[: blueprint.width, : len(given)] = columns
        self.kernels = kernels(source(blueprint), device)
        matrices = 4 * blueprint.depth * self.wide**2
        entering = 4 * blueprint.units * self.wide * LAYOUT.block
        # A share is a gradient and a squared error.
        self.share_bytes = matrices + 4
        self.block_bytes = self.share_bytes + entering
        # Weights, the same turned, and a gradient; a loss, and whether it is alive.
        self.point_bytes = self.share_bytes + 3 * matrices + 8 + 4

    def points_at_once(self, points: int) -> int:
        """Return how many points to update at once.

        More points leave memory for fewer blocks, and fewer points leave blocks less to
        share: of all even parts that fit, take the one with the fewest rounds.
        """
        sizes = [points]
        while sizes[-1] > 1:
            sizes.append(even_part_size(points, sizes[-1] - 1))
        fitting = [size for size in sizes if self.stack_bytes(size, 1) <= self.memory]
        return min(fitting or [1], key=lambda size: self._rounds(points, size))

    def _rounds(self, points: int, size: int) -> int:
        """Return how many tiles a block processes in sequence, for all points.

        Every part counts one more, for the other kernels that it launches.
        """
        rounds = math.ceil(size * self.tiles / self.blocks(size))
        return math.ceil(points / size) * (rounds + 1)

    def blocks(self, points: int) -> int:
        """Return how many blocks share the tiles of a number of points."""
        left = self.memory - self.stack_bytes(points, 0)
        fits = max(1, left // self.block_bytes)
        return min(self.kernels.blocks, fits, points * self.tiles)

    def stack_bytes(self, points: int, blocks: int) -> int:
        """Return the bytes of the buffers for a number of points and blocks."""
        # The number of shares is blocks + points - 1.
        shared = points * self.point_bytes + blocks * self.block_bytes
        return shared - self.share_bytes

    def workspace(self, points: int) -> "CudaWorkspace":
        """Return buffers, and the pass over them, for a stack of points."""
        return CudaWorkspace(self, points)


class CudaWorkspace:
    """Passes over one stack, in fixed buffers."""

    def __init__(self, passes: CudaPasses, points: int) -> None:
        self.passes, self.points = passes, points
        self.blocks = passes.blocks(points)
        x, blueprint = passes.x, passes.blueprint
        square = (blueprint.depth, passes.wide, passes.wide)
        shares = self.blocks + points - 1
        self.scratch = x.new_empty(
            self.blocks, blueprint.units, passes.wide, LAYOUT.block
        )
        self.slots, self.partial = x.new_zeros(shares, *square), x.new_zeros(shares)
        self.weights, self.turned, self.gradient = x.new_zeros(3, points, *square)
        self.losses = x.new_zeros(points, dtype=torch.float64)
        self.alive = x.new_zeros(points, dtype=torch.int32)

    def evaluate(self, weights: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
        """Return every point's loss, as float64, and gradient; see ``Workspace``."""
        passes, shares = self.passes, (self.slots, self.partial)
        shape = (passes.tiles, self.points, passes.blueprint.units)
        self._lay(weights)
        self.alive.copy_(alive)
        for share in shares:
            share.zero_()
        passes.kernels.passes(
            (self.blocks, 1),
            *(passes.x, passes.y, self.weights, self.turned, self.alive),
            *(self.scratch, *shares, float(passes.scale), passes.x.shape[1], *shape),
        )
        passes.kernels.sums(
            (self.points, math.ceil(self.gradient[0].numel() / _THREADS_OF_SUMS)),
            *(*shares, self.losses, self.gradient, self.blocks, *shape),
        )
        width = passes.blueprint.width
        losses = self.losses * (0.5 * passes.scale) + passes.constant
        return losses, self.gradient[..., :width, :width]

    def _lay(self, weights: Tensor) -> None:
        """Copy weights to the layouts of the kernel's forward and backward pass."""
        width, shortcut = self.passes.blueprint.width, self.passes.blueprint.shortcut
        self.weights[..., :width, :width].copy_(weights)
        self.turned.copy_(self.weights)
        last = slice(shortcut - 1, None, shortcut)
        self.turned[:, last].copy_(self.weights[:, last].mT)
