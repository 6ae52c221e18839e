"""All points of one shape as one batched computation, made for GPUs."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, ShortcutBlueprint, unknown_name
from theodolite.training.engines.contract import Advance
from theodolite.training.engines.stacked.nvrtc import CudaProgramError
from theodolite.training.engines.stacked.passes import TorchPasses
from theodolite.training.engines.stacked.samples import gather
from theodolite.training.engines.stacked.updates import Updates, full_precision
from theodolite.training.probes.probes import warn

Method = Literal["auto", "torch", "triton", "cuda"]
Precision = Literal["float32", "float64"]

# Activations take at most so much of the memory that is free on a CUDA device.
_SHARE = 0.5
# Beyond this, larger chunks gain nothing on any device.
_ENOUGH = {"cuda": 16 * 2**30, "cpu": 256 * 2**20}


def supports(blueprint: ShortcutBlueprint) -> bool:
    """Tell whether a stack of such networks can be trained at once.

    Example:
        >>> supports(ShortcutBlueprint(width=4, depth=2, mid="relu"))
        True
        >>> supports(ShortcutBlueprint(width=4, depth=2, mid="tanh"))
        False
    """
    ends = (blueprint.pre, blueprint.post) == ("identity",) * 2
    return ends and blueprint.mid in ("identity", "relu") and not blueprint.bias


class StackedEngine:
    """Train a stack of linear or ReLU-mid n-shortcut networks at once.

    On CUDA one update of the whole stack is a captured graph; on a CPU the same
    operations run one by one. Linear networks train on ``width`` samples that have
    the moments of the data. TF32 is never used by itself: the Triton kernel adds
    three TF32 products to one of float32 precision.

    Args:
        blueprint: Architecture of every point.
        x: Inputs, shape (samples, width).
        y: Targets, the same shape.
        dtype: Precision to compute in.
        device: Where to compute.
        method: ``torch`` for batched products; one fused kernel of float32 by
            ``triton`` (width up to 32) or by ``cuda`` (width up to 12, and quicker);
            ``auto`` takes the quickest that it can.
        memory: Bytes that activations may take; by default half of what is free, and
            no more than helps.

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
        if not supports(blueprint):
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
        samples = gather(blueprint, x, y, dtype=dtype)
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
        """What the result calls the strategy."""
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

    def advance(
        self,
        weights: Tensor,
        velocity: Tensor,
        rates: np.ndarray,
        *,
        momentum: np.ndarray,
        weight_decay: np.ndarray,
        floor: np.ndarray,
        ceiling: np.ndarray,
    ) -> Advance:
        """Make up to ``rates.shape[1]`` updates of every point, in place.

        Stacks too large for the memory go part by part. See
        :meth:`theodolite.training.engines.contract.Engine.advance` for the arguments.
        """
        settings = {
            "momentum": momentum,
            "weight_decay": weight_decay,
            "floor": floor,
            "ceiling": ceiling,
        }
        done = [
            self._ready(weights[some]).run(
                weights[some],
                velocity[some],
                rates[some],
                {name: np.asarray(value)[some] for name, value in settings.items()},
            )
            for some in self._parts(len(weights))
        ]
        return Advance(
            losses=np.concatenate([part.losses for part in done]),
            taken=np.concatenate([part.taken for part in done]),
            stopped=np.concatenate([part.stopped for part in done]),
        )

    def _parts(self, points: int) -> list[slice]:
        """Return even parts of a stack, each of which fits."""
        size = self._passes.room(points)
        return [slice(i, min(i + size, points)) for i in range(0, points, size)]

    def _ready(self, part: Tensor) -> Updates:
        """Return buffers for a part: those at hand where few would lie idle."""
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
    reasons = {}
    for name, choose in (("cuda", _lanes), ("triton", _triton)):
        if method in ("auto", name):
            try:
                found = choose(blueprint, samples, dtype, device)
            except CudaProgramError as problem:
                found = f"cannot take this installation ({problem}): choose another"
                if method == "auto":
                    _tell_failure(str(problem))
            if not isinstance(found, str):
                return found
            reasons[name] = found
    if method == "auto":
        return TorchPasses
    raise ConfigError(f"method {method!r} {reasons[method]}, or pass method='torch'")


def _lanes(
    blueprint: ShortcutBlueprint, samples: int, dtype: torch.dtype, device: torch.device
) -> Any:
    """Return the class of the kernel of CUDA C, compiled, or why not."""
    from theodolite.training.engines.stacked import lanes

    reason = lanes.unfit(blueprint, samples, dtype, device)
    if reason is not None:
        return f"cannot take {reason}: choose another"
    lanes.kernels(lanes.source(blueprint), device)
    return lanes.LanesPasses


@cache
def _tell_failure(reason: str) -> None:
    """Warn, once a reason, that a device trains more slowly than it could."""
    warn(
        f"the kernel of CUDA C was not made, though the device can run it ({reason}): "
        "training goes on more slowly without; method='torch' asks for none",
        RuntimeWarning,
    )


def _triton(
    blueprint: ShortcutBlueprint, samples: int, dtype: torch.dtype, device: torch.device
) -> Any:
    """Return the class of the Triton kernel, or why not."""
    del device
    if find_spec("triton") is None:
        return "without Triton: pip install 'theodolite[triton]'"
    from theodolite.training.engines.stacked.triton import TritonPasses, unfit

    reason = unfit(blueprint, samples, dtype)
    return TritonPasses if reason is None else f"cannot take {reason}: choose another"
