"""The generalised Gauss–Newton matrix of the loss, as an operator."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from theodolite.core import NormMode
from theodolite.instruments.differentiate.derivatives import Curve
from theodolite.instruments.model.losses import as_loss
from theodolite.instruments.model.objective import (
    Loss,
    Reduction,
    Weights,
    checked_value,
)
from theodolite.instruments.model.randomness import Randomness
from theodolite.instruments.operators.through_outputs import (
    OutputLoss,
    Outputs,
    ThroughOutputs,
    halves_of,
)
from theodolite.instruments.passes.batches import Batches
from theodolite.instruments.passes.grouping import Chunk
from theodolite.instruments.team.crews import Executor
from theodolite.instruments.team.processes import Team


class GaussNewton(ThroughOutputs):
    r"""$J^\top H_z J$: outputs by parameters, and the loss's Hessian by outputs.

    Args:
        model: Any module; left as found by every product.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them.
        loss: A loss of torch, or a function of outputs and targets; None where
            ``outputs`` and ``output_loss`` are given.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.
        outputs: ``outputs(model, batch) -> tensor`` for a loss of one's own.
        output_loss: ``output_loss(outputs, batch) -> scalar`` that goes with it.
        reduction: How ``output_loss`` combines samples, ``mean`` by default.
        micro_batch: Samples a pass at most; saves memory, changes nothing else.
        graph_bytes: Memory that graphs may take; most of what is free by default.
        seed: Seed of whatever the model draws.
        randomness: ``fixed`` allows dropout and fixes its masks by the seed; under
            ``eval`` dropout is off.
        weights: ``weights(batch)`` gives what a mean of a loss of one's own divides
            by, as one number or one a sample, such as how many targets count.
        max_batches: Batches to take at most, from the first.
        team: Who else holds batches, where this process holds its share of them.
        executor: Has the products made by processes elsewhere, such as
            ``RayCluster``; this one then holds no share.

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
        executor: Executor | None = None,
    ) -> None:
        del executor  # where it is given, no operator is made here
        loss = None if loss is None else as_loss(loss)
        run, then = halves_of("Gauss–Newton", loss, outputs, output_loss)
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

    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply by the loss's Hessian by the outputs."""
        if chunk.weight == 0:
            return torch.zeros_like(change)
        leaf = outputs.detach().requires_grad_()
        value = checked_value(self._output_loss(leaf, chunk.batch))
        return Curve(chunk.weight * value, [leaf]).product([change])[0]
