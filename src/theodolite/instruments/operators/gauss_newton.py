"""The generalised Gauss–Newton matrix of the loss, as an operator."""

import torch
from torch import Tensor

from ..differentiate.derivatives import Curve
from ..model.objective import Outputs, checked_value
from ..passes.grouping import Chunk
from ..passes.problem import OutputLoss
from .derivative_check import CheckedFunction
from .output_curvature import OutputCurvature, split_loss


class GaussNewton(OutputCurvature):
    r"""$J^\top H_z J$: the Jacobian $J$ of outputs and the loss's Hessian by outputs.

    Args:
        model: Any module, never changed; or a :class:`Problem`.
        batches: Its data, where no :class:`Problem` was given.
        settings: Those of :class:`Problem`, such as ``loss``: a torch loss or a
            function of outputs and targets, or ``outputs`` and ``output_loss``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> operator = GaussNewton(
        ...     layer, (x, x[:, :1]), loss=nn.MSELoss(), norm_mode="batch"
        ... )
        >>> operator.dense()
        array([[1., 0.],
               [0., 4.]])
    """

    title = "Gauss–Newton"

    def _split(self) -> tuple[Outputs, OutputLoss]:
        return split_loss("Gauss–Newton", self.problem)

    def _differentiated(self, chunk: Chunk) -> list[CheckedFunction]:
        outputs = self._prepared.run(chunk).detach().requires_grad_()
        loss = CheckedFunction(
            run=lambda: checked_value(self._output_loss(outputs, chunk.batch)),
            variables=[outputs],
            twice=True,
        )
        return [*super()._differentiated(chunk), loss]

    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply by the loss's Hessian by the outputs."""
        if chunk.weight == 0:
            return torch.zeros_like(change)
        leaf = outputs.detach().requires_grad_()
        value = checked_value(self._output_loss(leaf, chunk.batch))
        return Curve(chunk.weight * value, [leaf]).product([change])[0]
