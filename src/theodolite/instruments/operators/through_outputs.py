"""What curvatures that act on outputs share: a matrix between two Jacobians."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, Unpack

from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode
from theodolite.instruments.differentiate.derivatives import Map
from theodolite.instruments.model.losses import judged
from theodolite.instruments.model.objective import (
    Batch,
    Loss,
    Reduction,
    Weights,
    call_model,
    check_weights,
    checked_outputs,
    mass_of,
    pair_of,
    reduction_of,
    scalar_value,
)
from theodolite.instruments.model.randomness import Randomness
from theodolite.instruments.operators.output_map import OutputMap
from theodolite.instruments.operators.parameter_operator import ParameterOperator
from theodolite.instruments.passes.batches import Batches
from theodolite.instruments.passes.graph_cache import GraphCache
from theodolite.instruments.passes.grouping import Chunk
from theodolite.instruments.passes.set_up import set_up
from theodolite.instruments.team.processes import Team

Outputs = Callable[[nn.Module, Batch], Tensor]
OutputLoss = Callable[[Tensor, Batch], Tensor]


class Passes(TypedDict, total=False):
    """How passes over the data are made, see :class:`Hessian`."""

    params: Any
    micro_batch: int | None
    graph_bytes: int | None
    seed: int
    randomness: Randomness
    max_batches: int | None
    team: Team | None


class ThroughOutputs(ParameterOperator):
    r"""$J^\top C J$: outputs by parameters, and a symmetric matrix on the outputs.

    Args:
        model: Any module; left as found by every product.
        batches: The data.
        outputs: ``outputs(model, batch) -> tensor``.
        output_loss: ``output_loss(outputs, batch) -> scalar``.
        loss: The module that they were made of, where there is one.
        norm_mode: Statistics that normalisation layers use.
        reduction: How the loss combines samples.
        weights: What its mean divides by, where that is not the samples.
        passes: How passes over the data are made.
    """

    symmetric = True

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        *,
        outputs: Outputs,
        output_loss: OutputLoss,
        loss: Loss | None,
        norm_mode: NormMode | str,
        reduction: Reduction | None,
        weights: Weights | None,
        **passes: Unpack[Passes],
    ) -> None:
        self._output_loss = output_loss
        criterion: Any = output_loss if loss is None else loss
        self.reduction = reduction_of(criterion, reduction)
        check_weights(weights, self.reduction)

        def mass(batch: Batch, samples: int) -> float:
            return mass_of(criterion, batch, samples, weights)

        self._mass = mass if self.reduction == "mean" else None
        settings: dict[str, Any] = {"params": None, **passes}
        given = set_up(
            model,
            batches,
            kind=type(self).__name__,
            measure=lambda network, batch: checked_outputs(outputs(network, batch)),
            build=lambda found, leaves: Map(found, leaves).prepare(),
            walk=lambda found, chunk: found.walk(partial(self._curved, chunk)),
            norm_mode=norm_mode,
            mass=self._mass,
            judge=lambda found, batch: scalar_value(output_loss(found, batch)),
            scalar=False,
            callables=[output_loss],
            **settings,
        )
        maps: GraphCache[Map] = given.graphs()
        super().__init__(given, maps)
        self._map = OutputMap(given.prepared, maps)
        self.shape = (sum(self._sizes), sum(self._sizes))

    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply one flat vector."""
        self.passes += 1
        with self._prepared.session():
            return self._summed(self._map.through(self._parts(vector), self._curved))

    def block_matvec(self, places: Any, vector: Tensor) -> Tensor:
        """Multiply a diagonal block."""
        whole = self.matvec(self._embedded(places, vector))
        return self._extracted(places, whole)

    @abstractmethod
    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply a change of a chunk's outputs."""


def halves_of(
    kind: str, loss: Loss | None, outputs: Outputs | None, given: OutputLoss | None
) -> tuple[Outputs, OutputLoss]:
    """Return the two halves of a loss, or say that they were wanted."""
    if loss is None and outputs is not None and given is not None:
        return outputs, given
    if isinstance(loss, nn.Module) and given is None:
        criterion = loss

        def by_module(found: Tensor, batch: Batch) -> Tensor:
            return judged(criterion, found, pair_of(batch)[1])

        return outputs or _inputs_through, by_module
    raise MeasurementError(
        f"{kind} must know where the model ends and the loss begins: pass a torch "
        "loss module or a function of outputs and targets, or outputs=(model, batch) "
        "-> tensor with output_loss=(outputs, batch) -> scalar and no loss"
    )


def _inputs_through(model: nn.Module, batch: Batch) -> Tensor:
    return checked_outputs(call_model(model, pair_of(batch)[0]))
