"""How far a tangent kernel is from exact arithmetic, by products in float64."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError
from theodolite.instruments.operators.graph_noise import GraphNoise, graph_noise
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.team.processes import Team

# Products that one with a traced kernel may take, one an output.
_MOST = 16
# Samples a pass: a graph that is walked twice in float64 takes some ten times the
# memory of the kernel's own passes, and stays within their forecast.
_SAMPLES = 2


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
    make: Callable[[int], Operator], matrix: Tensor, traced: int, team: Team
) -> GraphNoise | None:
    """Compare a matrix with products, or None where that is out of reach.

    Under a team all of its processes compare, or none does.

    Args:
        make: Makes the kernel as an operator, given how many samples a pass takes.
        matrix: As measured.
        traced: Outputs that were summed over, 1 where none were.
        team: Who else has samples.
    """
    if traced > _MOST:
        return None
    try:
        kernel = make(_SAMPLES)
    except MeasurementError:  # samples that cannot be told apart
        kernel = None
    if team.largest(kernel is None) or kernel is None:
        return None
    operator = kernel if traced == 1 else Traced(kernel, traced)
    return graph_noise(operator, lambda vector: matrix.double() @ vector.double())
