"""How far a tangent kernel is from exact arithmetic, by products in float64."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError
from theodolite.instruments.operators.graph_noise import GraphNoise, graph_noise
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.operators.tangent import TangentKernel
from theodolite.instruments.team.processes import Team

# Products that one with a traced kernel may take, one an output.
_MOST = 16
# Samples a pass at least, and at most, beyond which passes were no quicker (16 took 0.6
# of the time of 2, of convolutions on one core).
_SAMPLES, _AT_MOST = 2, 16
# Of what a pass is forecast to take: float64 doubles it, and as much again is left.
_IN_FLOAT64 = 4


class Traced(Operator):
    r"""$K_{nm} = \sum_c K_{nc,mc}$ of a kernel on (sample, output)."""

    symmetric = True

    def __init__(self, whole: Operator, outputs: int) -> None:
        self._whole, self._outputs = whole, outputs
        size = whole.shape[0] // outputs
        self.shape, self.dtype, self.device = (size, size), whole.dtype, whole.device
        self.team = getattr(whole, "team", None)

    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector, an output at a time."""
        before, total = self._whole.passes, torch.zeros_like(vector)
        for output in range(self._outputs):
            spread = vector.new_zeros(len(vector), self._outputs)
            spread[:, output] = vector
            product = self._whole.matvec(spread.reshape(-1))
            total += product.reshape(spread.shape)[:, output]
        self.passes += self._whole.passes - before
        return total

    def remade(self, change: Callable[[Any], Any]) -> Operator | None:
        """Return the traced kernel of a changed model."""
        found = self._whole.remade(change)
        return None if found is None else Traced(found, self._outputs)


def kernel_noise(
    make: Callable[[int], TangentKernel],
    matrix: Tensor,
    traced: int,
    team: Team,
    *,
    room: int,
) -> GraphNoise | None:
    """Compare a matrix with products, or None where that is out of reach.

    Under a team all of its processes compare, or none does.

    Args:
        make: Makes the kernel as an operator, given how many samples a pass takes.
        matrix: As measured.
        traced: Outputs that were summed over, 1 where none were.
        team: Who else has samples.
        room: Bytes that passes may take.
    """
    if traced > _MOST:
        return None
    kernel: TangentKernel | None = None
    with suppress(MeasurementError):  # of samples that cannot be told apart
        kernel = make(_SAMPLES)
    if team.largest(kernel is None) or kernel is None:
        return None
    # All make another, or none does.
    samples = -int(team.largest(-_samples(kernel, room)))
    if samples > _SAMPLES:
        with suppress(MeasurementError):  # of memory that was taken meanwhile
            kernel = make(samples)
    operator = kernel if traced == 1 else Traced(kernel, traced)
    return graph_noise(operator, lambda vector: matrix.double() @ vector.double())


def _samples(kernel: TangentKernel, room: int) -> int:
    """Return how many samples a pass takes at most, from what fewest take."""
    jacobian = kernel.jacobian
    if jacobian.micro_batch is None or not jacobian.forecast_bytes:
        return _SAMPLES
    times = room // (_IN_FLOAT64 * jacobian.forecast_bytes)
    return min(_AT_MOST, _SAMPLES * max(1, times))
