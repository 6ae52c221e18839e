"""Outputs as a function of parameters, and curvature matrices between two Jacobians."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError

from ..differentiate.batch_norm_twice import own_statistics
from ..differentiate.derivatives import Curve, Map, Parts, add, zeros
from ..differentiate.twice import BatchNormCalls
from ..model.objective import (
    Batch,
    Outputs,
    call_model,
    checked_outputs,
    checked_value,
    judged,
    pair_of,
)
from ..passes.grouping import Chunk, Group
from ..passes.prepared_model import PreparedModel
from ..passes.problem import Measurement, OutputLoss, Problem
from .parameter_operator import ParameterOperator

Between = Callable[[Chunk, Tensor, Tensor], Tensor]


class OutputMap:
    """The linear map from parameters to outputs, chunk by chunk.

    Args:
        prepared: A model prepared to measure outputs.
    """

    def __init__(self, prepared: PreparedModel) -> None:
        self._prepared = prepared

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks, in the order of the data."""
        return [chunk for group in self._prepared.plan.groups for chunk in group.chunks]

    def shapes(self) -> list[torch.Size]:
        """Return the shape of each chunk's outputs."""
        with self._prepared.session(), torch.no_grad():
            return [self._shape(chunk) for chunk in self.chunks]

    def push(self, tangents: Parts) -> list[tuple[Chunk, Tensor, Tensor]]:
        """Return each chunk with its outputs and their change; in a session."""
        triples = []
        for group in self._prepared.plan.groups:
            pushed = zip(group.chunks, self._pushed(group, tangents), strict=True)
            triples += [(chunk, *pair) for chunk, pair in pushed]
        return triples

    def _pushed(self, group: Group, tangents: Parts) -> list[tuple[Tensor, Tensor]]:
        if group.coupled:
            return group.joint.push(tangents)
        map_ = self.map(group, group.chunks[0])
        return [(map_.outputs, map_.push(tangents))]

    def through(self, tangents: Parts, between: Between) -> Parts:
        """Push forward, apply a map to outputs and pull back, one group at a time.

        A graph that is not kept is built only once, and only the outputs of one group
        are in memory.

        Args:
            tangents: One for each leaf.
            between: Returns a cotangent for a chunk, its outputs and their change.
        """
        total = zeros(self._prepared.leaves)
        for group in self._prepared.plan.groups:
            add(total, self._through(group, tangents, between))
        return total

    def _through(self, group: Group, tangents: Parts, between: Between) -> Parts:
        # A separate function, so that a graph is freed before the next is built.
        if group.coupled:
            pushed = zip(group.chunks, group.joint.push(tangents), strict=True)
            return group.joint.pull([between(chunk, *pair) for chunk, pair in pushed])
        chunk = group.chunks[0]
        map_ = self.map(group, chunk)
        return map_.pull(between(chunk, map_.outputs, map_.push(tangents)))

    def pull(self, cotangents: Sequence[Tensor]) -> Parts:
        """Return the transpose's product with cotangents of all chunks."""
        total, queue = zeros(self._prepared.leaves), iter(cotangents)
        for group in self._prepared.plan.groups:
            given = [next(queue) for _ in group.chunks]
            if group.coupled:
                add(total, group.joint.pull(given))
            else:
                add(total, self.map(group, group.chunks[0]).pull(given[0]))
        return total

    def outputs(self) -> Parts:
        """Return each chunk's outputs; in a session."""
        outputs: Parts = []
        for group in self._prepared.plan.groups:
            if group.coupled:
                outputs += group.joint.outputs()
            else:
                outputs.append(self.map(group, group.chunks[0]).outputs)
        return outputs

    def map(self, group: Group, chunk: Chunk) -> Map:
        """Return the map from leaves to a chunk's outputs; it shares no moments."""
        prepared = self._prepared
        if chunk in prepared.graphs:
            return prepared.graphs[chunk]
        with prepared.building():
            outputs = prepared.run(chunk)
            idle = not outputs.requires_grad and prepared.depends(chunk)
            map_ = Map(outputs, prepared.leaves, constant=idle)
            if prepared.plan.offload:
                map_.prepare()
        prepared.keep(group, chunk, map_)
        return map_

    def _shape(self, chunk: Chunk) -> torch.Size:
        # Shapes do not depend on statistics, and a chunk may hold a single sample.
        with BatchNormCalls(own_statistics):
            return self._prepared.run(chunk).shape


class OutputCurvature(ParameterOperator):
    r"""$J^\top C J$: the Jacobian $J$ of outputs and a symmetric matrix $C$ on them."""

    symmetric = True

    def _measurement(self) -> Measurement:
        outputs, self._output_loss = self._split()
        self._divisor = self.problem.divisor()
        return Measurement(
            kind=type(self).__name__,
            measure=lambda network, batch: checked_outputs(outputs(network, batch)),
            build=lambda outputs, leaves: Map(outputs, leaves).prepare(),
            walk=lambda graph, chunk, tangents: graph.through(
                tangents, partial(self._curved, chunk)
            ),
            divisor=self._divisor,
            callables=[self._output_loss],
        )

    @cached_property
    def _map(self) -> OutputMap:
        return OutputMap(self._prepared)

    def product(self, vector: Tensor) -> Tensor:
        """Multiply one flat vector."""
        self.passes += 1
        with self._prepared.session():
            self._check_once()
            return self._summed(self._map.through(self._parts(vector), self._curved))

    @abstractmethod
    def _split(self) -> tuple[Outputs, OutputLoss]:
        """Return outputs of model and batch, and a loss of outputs and batch."""

    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply a change of a chunk's outputs by the Hessian of their loss."""
        if chunk.weight == 0:
            return torch.zeros_like(change)
        leaf = outputs.detach().requires_grad_()
        value = checked_value(self._output_loss(leaf, chunk.batch))
        return Curve(chunk.weight * value, [leaf]).product([change])[0]


def split_loss(kind: str, problem: Problem) -> tuple[Outputs, OutputLoss]:
    """Split a loss into outputs and a loss of outputs, or refuse it."""
    loss, outputs, given = problem.loss, problem.outputs, problem.output_loss
    if loss is None and outputs is not None and given is not None:
        return outputs, given
    if isinstance(loss, nn.Module) and given is None:
        criterion = loss

        def by_module(outputs: Tensor, batch: Batch) -> Tensor:
            return judged(criterion, outputs, pair_of(batch)[1])

        return outputs or _inputs_through, by_module
    raise MeasurementError(
        f"{kind} must know where the model ends and the loss begins: pass a torch "
        "loss module or a function of outputs and targets, or outputs=(model, batch) "
        "-> tensor with output_loss=(outputs, batch) -> scalar and no loss"
    )


def _inputs_through(model: nn.Module, batch: Batch) -> Tensor:
    return checked_outputs(call_model(model, pair_of(batch)[0]))
