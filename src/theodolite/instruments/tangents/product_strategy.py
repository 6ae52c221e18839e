"""A tangent kernel by products, where ranks hold parts of a batch; its rounding."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError, stream

from ..distributed.processes import Team
from ..operators.jacobian import TangentKernel
from ..operators.operator import Operator
from ..operators.rounding_noise import RoundingNoise, rounding_noise
from .layer_sweep import Plan
from .strategies import agrees, share_out

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
        self.shape, self.torch_dtype, self.device = (
            (size, size),
            whole.torch_dtype,
            whole.device,
        )
        self.team = getattr(whole, "team", None)

    def product(self, vector: Tensor) -> Tensor:
        """Multiply one vector, an output at a time."""
        before, total = self._whole.passes, torch.zeros_like(vector)
        for output in range(self._outputs):
            spread = vector.new_zeros(len(vector), self._outputs)
            spread[:, output] = vector
            product = self._whole.product(spread.reshape(-1))
            total += product.reshape(spread.shape)[:, output]
        self.passes += self._whole.passes - before
        return total

    @property
    def source(self) -> Any:
        """That of the kernel."""
        return self._whole.source

    def with_source(self, source: Operator) -> Operator:
        """Return the traced kernel of another source."""
        return Traced(self._whole.with_source(source), self._outputs)


def kernel_noise(
    make: Callable[[int], TangentKernel],
    matrix: Tensor,
    traced: int,
    team: Team,
    *,
    room: int,
) -> RoundingNoise | None:
    """Compare a matrix with products, or None where that is out of reach.

    Under a team all of its processes compare, or none does.

    Args:
        make: Makes the kernel as an operator, given how many samples a pass takes.
        matrix: As measured.
        traced: Outputs that were summed over, 1 where none were.
        team: Processes that have the other samples.
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
    return rounding_noise(operator, lambda vector: matrix.double() @ vector.double())


def _samples(kernel: TangentKernel, room: int) -> int:
    """Return the largest number of samples per pass, from the memory of the fewest."""
    jacobian = kernel.jacobian
    if jacobian.micro_batch is None or not jacobian.forecast_bytes:
        return _SAMPLES
    times = room // (_IN_FLOAT64 * jacobian.forecast_bytes)
    return min(_AT_MOST, _SAMPLES * max(1, times))


class ProductStrategy:
    """One measurement, a product of all ranks a row: no rank has a graph of all.

    Args:
        kernel: The kernel as an operator, with a team.
        width: Outputs of one sample.
        traced: Whether to sum over equal outputs.
        matrix_bytes: Memory that the matrix and the work on it may take.
    """

    def __init__(
        self, kernel: TangentKernel, width: int, traced: bool, matrix_bytes: int
    ) -> None:
        self._kernel, self.width, self.traced = kernel, width, traced
        rows, itemsize = kernel.shape[0], kernel.torch_dtype.itemsize
        self.samples, size = rows // width, rows // width if traced else rows
        given = -int(kernel.team.largest(-matrix_bytes))
        sheet = Plan([], [], width)
        share = share_out(
            sheet, size=size, rows=rows, itemsize=itemsize, matrix_bytes=given
        )
        self.peak_bytes, self._allowed = share.peak, given

    @property
    def passes(self) -> int:
        """Products spent so far."""
        return self._kernel.passes

    def kernel(self) -> tuple[Tensor, str]:
        """Return the matrix, compared with products of the transpose alone."""
        traced = self.traced
        operator: Operator = (
            Traced(self._kernel, self.width) if traced else self._kernel
        )
        matrix = torch.from_numpy(operator.dense(matrix_bytes=self._allowed))
        matrix = matrix.add(matrix.T).div_(2)
        if not self._confirmed(matrix):
            raise MeasurementError(
                "two ways to the tangent kernel disagree beyond rounding, or it holds "
                "NaN or infinity: look for randomness and changing state in the model, "
                "and check the data"
            )
        return matrix.to(self._kernel.device, self._kernel.torch_dtype), "by products"

    def _confirmed(self, matrix: Tensor) -> bool:
        r"""Compare a random quadratic form with $\|DF^\top v\|^2$, on all ranks."""
        drawn = torch.from_numpy(stream(0, "check").standard_normal((len(matrix),)))
        value = float(drawn @ (matrix @ drawn))
        vector, kernel = (
            drawn.to(self._kernel.device, self._kernel.torch_dtype),
            self._kernel,
        )
        spread = [vector]
        if self.traced:
            eye = torch.eye(self.width, dtype=vector.dtype, device=vector.device)
            spread = [torch.outer(vector, unit).reshape(-1) for unit in eye]
        with kernel.together():
            pulled = [
                kernel.jacobian.transposed_product(part).double() for part in spread
            ]
        wanted = sum(float(part.square().sum()) for part in pulled)
        right = agrees(value, wanted, torch.finfo(kernel.torch_dtype).eps)
        return not kernel.team.largest(not right)
