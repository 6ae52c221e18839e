"""The stacked engine: all points of one shape as one batched computation."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, ShortcutBlueprint, unknown_name
from theodolite.instruments import full_precision

from ...probes.probe import warn
from ..protocol import Advance, Rule, linear_or_relu
from .nvrtc import CudaProgramError
from .passes import TorchPasses, prepare_samples
from .updates import Updates

Method = Literal["auto", "torch", "cuda"]
Precision = Literal["float32", "float64"]

# Share of the free memory of a CUDA device that activations may take.
_SHARE = 0.5
# Bytes beyond which larger chunks gain nothing.
_ENOUGH = {"cuda": 16 * 2**30, "cpu": 256 * 2**20}


class StackedEngine:
    """Train a stack of linear or ReLU-mid n-shortcut networks at once.

    On CUDA one update of the whole stack is a captured graph; on a CPU the same
    operations run one by one. Linear networks train on ``width`` samples that have
    the moments of the data. TF32 is never used.

    Args:
        blueprint: Architecture of every point.
        x: Inputs, shape (samples, width).
        y: Targets, the same shape.
        dtype: Precision to compute in.
        device: Where to compute.
        method: ``torch`` for batched products; ``cuda`` for one fused kernel of
            float32 (width up to 12, and faster); ``auto`` takes ``cuda`` where it can.
        memory: Bytes that activations may take; by default half of the free memory, up
            to 16 GiB.

    Example:
        >>> x = np.eye(2)
        >>> blueprint = ShortcutBlueprint(width=2, depth=2)
        >>> engine = StackedEngine(blueprint, x, 2 * x, dtype="float64", device="cpu")
        >>> engine.name
        'stacked (torch)'
        >>> engine.losses(engine.place(np.zeros((3, 2, 2, 2))))
        array([0.5, 0.5, 0.5])
    """

    def __init__(
        self,
        blueprint: ShortcutBlueprint,
        x: np.ndarray,
        y: np.ndarray,
        *,
        dtype: Precision = "float32",
        device: torch.device | str = "cuda",
        method: Method = "auto",
        memory: int | None = None,
    ) -> None:
        if not linear_or_relu(blueprint):
            raise ConfigError(
                "the stacked engine trains networks without bias whose only activation "
                f"is ReLU at mid, not {blueprint}: use the plain loop"
            )
        if dtype not in get_args(Precision):
            raise unknown_name("dtype", dtype, get_args(Precision))
        if method not in get_args(Method):
            raise unknown_name("method", method, get_args(Method))
        self.blueprint, self.device = blueprint, torch.device(device)
        self.dtype = getattr(torch, dtype)
        samples = prepare_samples(blueprint, x, y, dtype=dtype)
        self._reduced = samples.reduced
        kind = _passes(blueprint, len(samples.x), self.dtype, self.device, method)
        self._passes = kind(
            blueprint,
            samples,
            dtype=self.dtype,
            device=self.device,
            memory=_budget(self.device) if memory is None else memory,
        )
        self._updates: Updates | None = None

    @property
    def name(self) -> str:
        """Name of the strategy in results."""
        moments = "moments " if self._reduced else ""
        graph = ", CUDA graph" if self.device.type == "cuda" else ""
        return f"stacked {moments}({self._passes.label}){graph}"

    def place(self, weights: np.ndarray | Sequence[np.ndarray]) -> Tensor:
        """Return a copy of weights on the device, in the engine's precision."""
        return torch.tensor(np.asarray(weights), dtype=self.dtype, device=self.device)

    def fetch(self, weights: Tensor, point: int) -> np.ndarray:
        """Return one point's weights as float64, shape (depth, width, width)."""
        return weights[point].to("cpu", torch.float64, copy=True).numpy()

    def keep(self, weights: Tensor, points: np.ndarray) -> Tensor:
        """Return the stack of those points only, in that order."""
        return weights[torch.as_tensor(np.asarray(points), device=self.device)]

    def losses(self, weights: Tensor) -> np.ndarray:
        """Return the loss of every point, shape (points,), as float64."""
        losses = np.empty(len(weights))
        for some in self._parts(len(weights)):
            updates = self._ready(weights[some])
            count = some.stop - some.start
            with full_precision(), torch.cuda.device_of(weights):
                updates.weights[:count].copy_(weights[some])
                alive = torch.ones_like(updates.alive)
                loss, _ = updates.workspace.evaluate(updates.weights, alive)
            losses[some] = loss[:count].cpu().numpy()
        return losses

    def advance(self, weights: Tensor, velocity: Tensor, rule: Rule) -> Advance:
        """Update every point in place, once per step of the rule or until it stops.

        Stacks too large for the memory go part by part.
        """
        done = [
            self._ready(weights[some]).run(
                weights[some], velocity[some], Rule(*(each[some] for each in rule))
            )
            for some in self._parts(len(weights))
        ]
        return Advance(*(np.concatenate(parts) for parts in zip(*done, strict=True)))

    def _parts(self, points: int) -> list[slice]:
        """Return even parts of a stack, each of which fits."""
        size = self._passes.points_at_once(points)
        return [slice(i, min(i + size, points)) for i in range(0, points, size)]

    def _ready(self, part: Tensor) -> Updates:
        """Return buffers for a part: the present ones if they are not much larger."""
        held = self._updates.points if self._updates else 0
        if self._updates is None or not 3 * held <= 4 * len(part) <= 4 * held:
            self._updates = None  # frees the old buffers first
            with torch.cuda.device_of(part):
                self._updates = Updates(self._passes.workspace(len(part)), part)
        return self._updates


def _budget(device: torch.device) -> int:
    """Return the bytes that activations may take."""
    enough = _ENOUGH["cuda" if device.type == "cuda" else "cpu"]
    if device.type != "cuda":
        return enough
    free, _ = torch.cuda.mem_get_info(device)
    return min(enough, int(_SHARE * free))


def _passes(
    blueprint: ShortcutBlueprint,
    samples: int,
    dtype: torch.dtype,
    device: torch.device,
    method: Method,
) -> Any:
    """Return the class that computes losses and gradients."""
    if method == "torch" or (method == "auto" and device.type != "cuda"):
        return TorchPasses
    try:
        reason = _unsupported_reason(blueprint, samples, dtype, device)
    except CudaProgramError as problem:
        reason = f"this installation ({problem})"
        if method == "auto":
            _warn_of_failure(str(problem))
    if reason is None:
        from .cuda_kernel import CudaPasses

        return CudaPasses
    if method == "auto":
        return TorchPasses
    raise ConfigError(f"method {method!r} cannot take {reason}: pass method='torch'")


def _unsupported_reason(
    blueprint: ShortcutBlueprint, samples: int, dtype: torch.dtype, device: torch.device
) -> str | None:
    """Compile the CUDA kernel, or return what it cannot take."""
    from . import cuda_kernel

    reason = cuda_kernel.unsupported_reason(blueprint, samples, dtype, device)
    if reason is None:
        cuda_kernel.kernels(cuda_kernel.source(blueprint), device)
    return reason


@cache
def _warn_of_failure(reason: str) -> None:
    """Warn, once per reason, that a device trains more slowly than it could."""
    warn(
        f"the kernel of CUDA C was not made, though the device can run it ({reason}): "
        "training goes on more slowly without; method='torch' asks for none",
        RuntimeWarning,
    )
