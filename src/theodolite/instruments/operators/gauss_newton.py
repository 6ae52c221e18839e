"""The generalised Gauss–Newton matrix of the loss, as an operator."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode
from theodolite.instruments.differentiate.derivatives import Curve, Map
from theodolite.instruments.differentiate.parts import flat
from theodolite.instruments.model.objective import (
    Batch,
    Loss,
    Reduction,
    call_model,
    checked_outputs,
    checked_value,
    mass_of,
    pair_of,
    reduction_of,
)
from theodolite.instruments.model.randomness import Randomness
from theodolite.instruments.operators.output_map import OutputMap
from theodolite.instruments.operators.parameter_operator import ParameterOperator
from theodolite.instruments.passes.batches import Batches
from theodolite.instruments.passes.graph_cache import GraphCache
from theodolite.instruments.passes.grouping import Chunk
from theodolite.instruments.passes.set_up import set_up

Outputs = Callable[[nn.Module, Batch], Tensor]
OutputLoss = Callable[[Tensor, Batch], Tensor]


class GaussNewton(ParameterOperator):
    r"""$J^\top H_z J$: outputs by parameters, and the loss's Hessian by outputs.

    Args:
        model: Any module; left as found by every product.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them.
        loss: A torch loss module; None where ``outputs`` and ``output_loss`` are given.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.
        outputs: ``outputs(model, batch) -> tensor`` for a loss of one's own.
        output_loss: ``output_loss(outputs, batch) -> scalar`` that goes with it.
        reduction: How ``output_loss`` combines samples, ``mean`` by default.
        micro_batch: Samples a pass at most; saves memory, changes nothing else.
        graph_bytes: Memory that graphs may take; most of what is free by default.
        seed: Seed of whatever the model draws.
        randomness: ``fixed`` allows dropout and fixes its masks by the seed.

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

    symmetric = True

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
    ) -> None:
        given_outputs, given_loss = outputs, output_loss
        outputs, self._output_loss = _parts_of(loss, outputs, output_loss)
        criterion: Any = self._output_loss if loss is None else loss
        self.reduction = reduction_of(criterion, reduction)
        given = set_up(
            model,
            batches,
            measure=lambda network, batch: checked_outputs(outputs(network, batch)),
            build=lambda found, leaves: Map(found, leaves).prepare(),
            norm_mode=norm_mode,
            params=params,
            mass=(lambda batch, samples: mass_of(criterion, batch, samples))
            if self.reduction == "mean"
            else None,
            scalar=False,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
        )
        maps: GraphCache[Map] = GraphCache(retain=given.retain)
        super().__init__(given, maps)
        self._map = OutputMap(given.prepared, maps)
        self.shape = (sum(self._sizes), sum(self._sizes))
        self.randomness = randomness
        self._remake = lambda change: GaussNewton(
            change(self.model),
            self.changed_data(change),
            loss=change(loss),
            norm_mode=norm_mode,
            params=self.names,
            outputs=given_outputs,
            output_loss=given_loss,
            reduction=reduction,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
        )

    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply one flat vector."""
        self.passes += 1
        with self._prepared.session():
            pushed = self._map.push(self._parts(vector))
            return flat(self._map.pull([self._curved(*entry) for entry in pushed]))

    def block_matvec(self, places: Sequence[int], vector: Tensor) -> Tensor:
        """Multiply a diagonal block."""
        whole = self.matvec(self._embedded(places, vector))
        return self._extracted(places, whole)

    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply a change of a chunk's outputs by the loss's Hessian."""
        leaf = outputs.detach().requires_grad_()
        value = checked_value(self._output_loss(leaf, chunk.batch))
        return Curve(chunk.weight * value, [leaf]).product([change])[0]


def _parts_of(
    loss: Loss | None, outputs: Outputs | None, output_loss: OutputLoss | None
) -> tuple[Outputs, OutputLoss]:
    """Return the two halves of a loss, or say that they were wanted."""
    if loss is None and outputs is not None and output_loss is not None:
        return outputs, output_loss
    if isinstance(loss, nn.Module) and output_loss is None:
        criterion = loss

        def by_module(found: Tensor, batch: Batch) -> Tensor:
            return criterion(found, pair_of(batch)[1])

        return outputs or _inputs_through, by_module
    raise MeasurementError(
        "Gauss–Newton must know where the model ends and the loss begins: pass a torch "
        "loss module, or outputs=(model, batch) -> tensor with output_loss=(outputs, "
        "batch) -> scalar and no loss"
    )


def _inputs_through(model: nn.Module, batch: Batch) -> Tensor:
    return checked_outputs(call_model(model, pair_of(batch)[0]))
