"""A tangent kernel by products, where statistics run over what ranks hold apart."""

import torch
from torch import Tensor

from theodolite.core import MeasurementError, stream
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.operators.tangent import TangentKernel
from theodolite.instruments.tangents.layer_sweep import Plan
from theodolite.instruments.tangents.noise import Traced
from theodolite.instruments.tangents.work import agrees, share_out


class ProductWork:
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
        rows, itemsize = kernel.shape[0], kernel.dtype.itemsize
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
        found = torch.from_numpy(operator.dense(matrix_bytes=self._allowed))
        found = found.add(found.T).div_(2)
        if not self._confirmed(found):
            raise MeasurementError(
                "two ways to the tangent kernel disagree beyond rounding, or it holds "
                "NaN or infinity: look for randomness and changing state in the model, "
                "and check the data"
            )
        return found.to(self._kernel.device, self._kernel.dtype), "by products"

    def _confirmed(self, matrix: Tensor) -> bool:
        r"""Compare a random quadratic form with $\|DF^\top v\|^2$, on all ranks."""
        drawn = torch.as_tensor(stream(0, "check").standard_normal((len(matrix),)))
        found = float(drawn @ (matrix @ drawn))
        vector, kernel = drawn.to(self._kernel.device, self._kernel.dtype), self._kernel
        spread = [vector]
        if self.traced:
            eye = torch.eye(self.width, dtype=vector.dtype, device=vector.device)
            spread = [torch.outer(vector, unit).reshape(-1) for unit in eye]
        with kernel.together():
            pulled = [kernel.jacobian.rmatvec(part).double() for part in spread]
        wanted = sum(float(part.square().sum()) for part in pulled)
        right = agrees(found, wanted, torch.finfo(kernel.dtype).eps)
        return not kernel.team.largest(not right)
