"""The generalised Gauss–Newton matrix of the loss, as an operator."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from theodolite.core import NormMode

from ..differentiate.derivatives import Curve
from ..distributed.processes import Team
from ..model.losses import as_loss
from ..model.objective import Loss, Reduction, Weights, checked_value
from ..model.randomness import Randomness
from ..passes.batches import Batches
from ..passes.grouping import Chunk
from .derivative_check import CheckedFunction
from .output_curvature import OutputCurvature, OutputLoss, Outputs, split_loss


class GaussNewton(OutputCurvature):
    r"""$J^\top H_z J$: the Jacobian $J$ of outputs and the loss's Hessian by outputs.

    Args:
        model: Any module; never changed.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them.
        loss: A torch loss or a function of outputs and targets; None where ``outputs``
            and ``output_loss`` are given.
        norm_mode: Statistics that normalisation layers use.
        outputs: ``outputs(model, batch) -> tensor`` of a custom loss.
        output_loss: ``output_loss(outputs, batch) -> scalar`` that goes with it.
        reduction: How ``output_loss`` combines samples, ``mean`` by default.
        params, micro_batch, graph_bytes, seed, randomness, weights, max_batches, team:
        As for
            :class:`Hessian`.

    Example:
        >>> import torch
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

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        *,
        loss: Loss | None = None,
        norm_mode: NormMode | str,
        params: Sequence[str] | None = None,
        outputs: Outputs | None = None,
        output_loss: OutputLoss | None = None,
        reduction: Reduction | None = None,
        micro_batch: int | None = None,
        graph_bytes: int | None = None,
        seed: int = 0,
        randomness: Randomness = "refuse",
        weights: Weights | None = None,
        max_batches: int | None = None,
        team: Team | None = None,
    ) -> None:
        loss = None if loss is None else as_loss(loss)
        run, then = split_loss("Gauss–Newton", loss, outputs, output_loss)
        super().__init__(
            model,
            batches,
            outputs=run,
            output_loss=then,
            loss=loss,
            norm_mode=norm_mode,
            params=params,
            reduction=reduction,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            weights=weights,
            max_batches=max_batches,
            team=team,
        )
        self.randomness = randomness
        self._remake = lambda change: GaussNewton(
            change(self.model),
            self.changed_data(change),
            loss=change(loss),
            norm_mode=norm_mode,
            params=self.names,
            outputs=outputs,
            output_loss=output_loss,
            reduction=reduction,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            weights=weights,
            team=team,
        )

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
