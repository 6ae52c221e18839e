"""Losses and gradients of a stack of narrow networks by one fused kernel."""

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.stacked.kernel import passes_kernel
from theodolite.training.engines.stacked.limits import Limits
from theodolite.training.engines.stacked.passes import even
from theodolite.training.engines.stacked.samples import Samples
from theodolite.training.probes.probes import warn

LIMITS = Limits(width=32)
# Programs a multiprocessor gets in one pass: a few rounds, so that none waits long.
_PROGRAMS = 32
# Products a pass from which trying several tiles pays.
_WORTH_TUNING = 1e8


@dataclass(frozen=True)
class Tile:
    """How a program that multiplies tiles is laid out.

    Attributes:
        block: Samples a tile.
        warps: Warps a program; with one, threads exchange what they need by shuffles.
        precision: How tiles are multiplied: ``split``, ``tf32x3`` or ``ieee``.
        stages: Depth of software pipelining.
        registers: Most registers a thread; None leaves it to the compiler.
    """

    block: int
    warps: int = 1
    precision: str = "split"
    stages: int = 1
    registers: int | None = None


# Few registers let more programs hide one another's waits, but spill.
TILES = (
    Tile(64, stages=2),
    Tile(64),
    Tile(32, registers=168),
    Tile(32, stages=2, registers=128),
    Tile(64, precision="tf32x3"),
)


def unfit(blueprint: ShortcutBlueprint, samples: int, dtype: torch.dtype) -> str | None:
    """Say what the kernel cannot take, if anything."""
    return LIMITS.exceeded(blueprint, samples, dtype)


class TritonPasses:
    """Plan the fused pass of one blueprint, and make room for stacks.

    Args:
        blueprint: Architecture of every point, linear or with ReLU at mid.
        samples: What the points train on.
        dtype: float32.
        device: A CUDA device (or a CPU, where Triton interprets).
        memory: Bytes that scratch space may take.
    """

    label = "triton"

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
        self.x = torch.as_tensor(samples.x, dtype=dtype, device=device).contiguous()
        self.y = torch.as_tensor(samples.y, dtype=dtype, device=device).contiguous()
        self.padded = 16 if blueprint.width <= 16 else 32
        self.tile: Tile | None = None
        self.seconds: dict[Tile, float] = {}
        self.failed: dict[Tile, str] = {}

    def layouts(self) -> list[Tile]:
        """List what may be tried."""
        # Tiles of twice the width take twice the registers.
        return [replace(t, block=t.block * 16 // self.padded) for t in TILES]

    def program_bytes(self, tile: Tile) -> int:
        """Return what one program keeps: inputs of units, and gradients."""
        gradient = self.blueprint.depth * self.blueprint.width**2
        return 4 * (self.blueprint.units * tile.block * self.padded + gradient)

    def room(self, points: int) -> int:
        """Return how many points to move at once."""
        largest = max(self.program_bytes(tile) for tile in self.layouts())
        return even(points, self.memory // largest)

    def workspace(self, points: int) -> "TritonWorkspace":
        """Return buffers, and the pass over them, for a stack of points."""
        if self.tile is None:
            size = points * len(self.x) * self.blueprint.depth
            if not self.x.is_cuda or size < _WORTH_TUNING:
                block = 16 if len(self.x) <= 16 else 512 // self.padded
                return TritonWorkspace(self, points, Tile(block))
            self.tile = self._quickest(points)
        return TritonWorkspace(self, points, self.tile)

    def _quickest(self, points: int) -> Tile:
        """Time one pass with every layout and return the quickest."""
        shape = (points, self.blueprint.depth, *[self.blueprint.width] * 2)
        weights = 0.01 * torch.randn(shape, device=self.x.device)
        alive = torch.ones(points, dtype=torch.bool, device=self.x.device)
        for tile in self.layouts():
            workspace = TritonWorkspace(self, points, tile)
            try:
                self.seconds[tile] = _timed(workspace, weights, alive)
            except Exception as problem:
                # What this card or this Triton does not take is left out, as long as
                # there is another.
                self.failed[tile] = f"{type(problem).__name__}: {problem}"[:200]
                if len(self.failed) == len(self.layouts()):
                    raise
        self._tell_failures()
        return min(self.seconds, key=self.seconds.__getitem__)

    def _tell_failures(self) -> None:
        """Warn of the layouts that were left out, with the reason of the first."""
        for tile, reason in list(self.failed.items())[:1]:
            warn(
                f"{len(self.failed)} of {len(self.layouts())} layouts of the fused "
                f"kernel failed and are left out, first {tile} with {reason}: training "
                "goes on with the quickest of the others; another Triton may take all",
                RuntimeWarning,
            )


def _timed(workspace: "TritonWorkspace", weights: Tensor, alive: Tensor) -> float:
    """Return the seconds of a second pass; the first compiles."""
    workspace.evaluate(weights, alive)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    workspace.evaluate(weights, alive)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000


class TritonWorkspace:
    """Passes over one stack, in buffers that stay where they are."""

    def __init__(self, passes: TritonPasses, points: int, tile: Tile) -> None:
        self.passes, self.points, self.tile = passes, points, tile
        x, blueprint = passes.x, passes.blueprint
        self.tiles = math.ceil(len(x) / tile.block)
        self.splits = math.ceil(self.tiles / math.ceil(self.tiles / self._wanted()))
        square = (blueprint.depth, blueprint.width, blueprint.width)
        self.scratch = x.new_empty(
            points * self.splits, blueprint.units, tile.block * passes.padded
        )
        self.slots = x.new_zeros(points, self.splits, *square)
        self.partial = x.new_zeros(points, self.splits)

    def _wanted(self) -> int:
        """Return how many programs a point should get."""
        device = self.passes.x.device
        processors = 1
        if device.type == "cuda":
            processors = torch.cuda.get_device_properties(device).multi_processor_count
        fits = self.passes.memory // self.passes.program_bytes(self.tile)
        programs = min(processors * _PROGRAMS, fits)
        return min(self.tiles, max(1, programs // self.points))

    def evaluate(self, weights: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
        """Return every point's loss, as float64, and gradient.

        Args:
            weights: Shape (points, depth, width, width).
            alive: Points to compute; what is returned for others means nothing.
        """
        self._launch(weights, alive.to(torch.int32))
        passes = self.passes
        losses = self.partial.sum(1, dtype=torch.float64) * (0.5 * passes.scale)
        return losses + passes.constant, self.slots.sum(1)

    def _launch(self, weights: Tensor, alive: Tensor) -> None:
        passes, blueprint = self.passes, self.passes.blueprint
        passes_kernel[(self.points * self.splits,)](
            passes.x,
            passes.y,
            weights,
            alive,
            self.scratch,
            self.slots,
            self.partial,
            passes.scale,
            len(passes.x),
            self.tiles,
            self.splits,
            blueprint.units,
            width=blueprint.width,
            padded=passes.padded,
            block=self.tile.block,
            shortcut=blueprint.shortcut,
            skip=blueprint.skip,
            relu=not blueprint.linear,
            precision=self.tile.precision,
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        """Return how to compile, which the interpreter does not take."""
        if os.environ.get("TRITON_INTERPRET") == "1":
            return {}
        options = {"num_warps": self.tile.warps, "num_stages": self.tile.stages}
        if self.tile.registers is not None:
            options["maxnreg"] = self.tile.registers
        return options
