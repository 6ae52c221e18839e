"""Statistics of tensors during a pass: signals, units, inputs of norm layers."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Signal:
    """Size of a signal, and similarity between samples, over a batch.

    Attributes:
        rms: Root mean square of its entries.
        rms_error: Standard error over samples.
        correlation: Mean cosine between two samples, NaN for fewer than two.
        correlation_error: Its standard error.
    """

    rms: float
    rms_error: float
    correlation: float
    correlation_error: float


def signal_of(tensor: Tensor, samples: int) -> Signal:
    """Measure a signal whose first axis is samples."""
    rms, error = squares_of(tensor, samples)
    cosine, spread = _likeness(tensor, samples)
    return Signal(
        rms=rms, rms_error=error, correlation=cosine, correlation_error=spread
    )


def squares_of(tensor: Tensor, samples: int) -> tuple[float, float]:
    """Return the root mean square, and its standard error over samples."""
    if tensor.ndim == 0 or len(tensor) != samples:
        return float(tensor.double().square().mean().sqrt()), math.nan
    means = tensor.reshape(samples, -1).double().square().mean(1)
    rms = float(means.mean().sqrt())
    if samples < 2 or not rms:
        return rms, math.nan if rms else 0.0
    return rms, float(means.std()) / (2 * rms * math.sqrt(samples))


def _likeness(tensor: Tensor, samples: int) -> tuple[float, float]:
    """Return the mean cosine between samples, with its error as a U-statistic."""
    if samples < 2 or tensor.ndim == 0 or len(tensor) != samples:
        return math.nan, math.nan
    rows = tensor.reshape(samples, -1).double()
    norms = rows.norm(dim=1, keepdim=True)
    if not bool((norms > 0).all()):
        return math.nan, math.nan
    rows = rows / norms
    with_others = (rows @ rows.sum(0) - 1) / (samples - 1)
    error = 2 * float(with_others.std()) / math.sqrt(samples)
    return float(with_others.mean()), error


@dataclass(frozen=True, kw_only=True)
class UnitCounts:
    """Counts of dead, saturated and equal units of one activation over a batch.

    A unit is a channel: an entry along the second axis of images, along the last of
    everything else.

    Attributes:
        units: Number of units.
        dead: Units that are zero for all samples at all places.
        saturated: Share of entries so near an end of the range that the derivative is
            below 1 % of its largest; NaN of kinds that have no ends.
        twins: Live units with the same output as another, to 0.001 % of the largest.
    """

    units: int
    dead: int
    saturated: float
    twins: int = 0


# Ends of the range, and the distance at which the derivative is 1 % of its maximum: it
# is 1 − y² for tanh, and y(1 − y) for the logistic function, at most 1/4.
_RANGES = {
    "tanh": (-1.0, 1.0, 1 - math.sqrt(0.99)),
    "sigmoid": (0.0, 1.0, (1 - math.sqrt(0.99)) / 2),
}


def unit_counts(tensor: Tensor, kind: str, axis: int | None = None) -> UnitCounts:
    """Return counts of the units in the output of an activation.

    Args:
        tensor: The output.
        kind: Kind of the activation.
        axis: Axis of the units; by default the second for images, else the last.
    """
    if axis is None:
        axis = 1 if tensor.ndim in (4, 5) else max(tensor.ndim - 1, 0)
    others = [a for a in range(tensor.ndim) if a != axis]
    zero = tensor == 0
    dead = zero.all(dim=others[0]) if len(others) == 1 else _all(zero, others)
    saturated = math.nan
    if kind in _RANGES:
        low, high, near = _RANGES[kind]
        ends = (tensor - low < near) | (high - tensor < near)
        saturated = float(ends.double().mean())
    return UnitCounts(
        units=tensor.shape[axis] if tensor.ndim else 1,
        dead=int(dead.sum()),
        saturated=saturated,
        twins=_twins(tensor.movedim(axis, -1)) if tensor.ndim > 1 else 0,
    )


# Places compared to find equal units; with fewer than _FEWEST, units may agree by
# chance; relative distance that counts as equal. All by choice.
_PLACES, _FEWEST, _EQUAL = 1024, 8, 1e-5


def _twins(tensor: Tensor) -> int:
    """Count columns equal to the one before, sorted by a fixed linear combination."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    rows = rows[:: max(len(rows) // _PLACES, 1)].double()
    rows = rows[:, rows.abs().amax(0) > 0]
    if rows.shape[1] < 2 or len(rows) < _FEWEST or not bool(rows.isfinite().all()):
        return 0
    weights = torch.linspace(1, 2, len(rows), dtype=rows.dtype, device=rows.device)
    rows = rows[:, (weights.cos() @ rows).argsort()]
    apart = (rows[:, 1:] - rows[:, :-1]).abs().amax(0)
    return int((apart <= _EQUAL * rows.abs().max()).sum())


def _all(zero: Tensor, axes: list[int]) -> Tensor:
    for axis in sorted(axes, reverse=True):
        zero = zero.all(dim=axis)
    return zero


@dataclass(frozen=True, kw_only=True)
class NormInput:
    """What a norm layer computes its statistics from.

    Attributes:
        numbers: How many numbers stand behind one statistic.
        spread: Their standard deviation, or root mean square for a norm that subtracts
            no mean; root mean square over all statistics of the layer.
        spread_error: Its standard error over samples.
    """

    numbers: int
    spread: float
    spread_error: float


def norm_input(module: nn.Module, tensor: Tensor, samples: int) -> NormInput:
    """Measure the input of a norm layer.

    Args:
        module: The norm layer.
        tensor: Its input.
        samples: Number of samples.
    """
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        axes = [axis for axis in range(tensor.ndim) if axis != 1]
        count = tensor.numel() // max(tensor.shape[1], 1)
        numbers = max(count // max(samples, 1), 1) * samples
    elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
        axes = list(range(-len(module.normalized_shape), 0))
        numbers = math.prod(module.normalized_shape)
    else:  # statistics of each sample, and of each channel or group
        groups = module.num_groups if isinstance(module, nn.GroupNorm) else 0
        tensor = tensor.reshape(len(tensor), groups or tensor.shape[1], -1)
        axes, numbers = [2], tensor.shape[2]
    if not isinstance(module, nn.RMSNorm):
        tensor = tensor - tensor.mean(axes, keepdim=True)
    spread, error = squares_of(tensor, samples)
    return NormInput(numbers=numbers, spread=spread, spread_error=error)
