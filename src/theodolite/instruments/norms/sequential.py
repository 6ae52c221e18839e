"""Process chunks one after the other: memory of one, one pass over all per norm."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..differentiate.derivatives import Curve, Map, Parts, add, zeros
from ..distributed.processes import Team
from .full_statistics import FullStatistics, Moments


class SequentialChunks:
    """Moments of every batch-norm call over several chunks, and all derivatives.

    Args:
        chunks: Pieces of the data.
        run: Runs the model on a chunk and returns the measured value.
        leaves: Parameters to differentiate by.
        team: Processes with the other chunks; results pulled back are local shares.
        reason: Why these chunks cannot run in lockstep.
    """

    way = "sequential"

    def __init__(
        self,
        chunks: Sequence[Any],
        *,
        run: Callable[[Any], Tensor],
        leaves: Sequence[Tensor],
        team: Team | None = None,
        reason: str = "",
    ) -> None:
        self.reason = reason
        self._chunks, self._leaves = list(chunks), list(leaves)
        self._statistics = FullStatistics(chunks, run, team)
        self._multipliers: Parts | None = None

    @property
    def known(self) -> list[Moments]:
        """Moments of all the data, one per call."""
        return self._statistics.known

    def outputs(self) -> list[Tensor]:
        """Return the measured value of each chunk."""
        with torch.no_grad():
            return [self._forward(chunk)[0] for chunk in self._chunks]

    def push(self, tangents: Parts) -> list[tuple[Tensor, Tensor]]:
        """Return the measured value of each chunk, and its change along tangents."""
        moved = self._statistics.tangent(self._leaves, tangents)
        pairs = []
        for chunk in self._chunks:
            variables = self._statistics.variables()
            outputs, _ = self._statistics.forward(chunk, variables)
            map_ = Map(outputs, [*self._leaves, *variables])
            pairs.append((map_.outputs, map_.push([*tangents, *moved])))
        return pairs

    def pull(self, cotangents: Sequence[Tensor]) -> Parts:
        """Pull cotangents of all chunks back to the parameters."""
        given = dict(zip(map(id, self._chunks), cotangents, strict=True))

        def source(chunk: Any, variables: Parts) -> tuple[Parts, Parts, Parts]:
            outputs, shares = self._statistics.forward(chunk, variables)
            return [outputs], [given[id(chunk)]], shares

        return self._statistics.pull(self._leaves, source)

    def gradient(self, weights: Sequence[float]) -> tuple[list[Tensor], Parts]:
        """Return the losses of all chunks, and the gradient of their weighted sum."""
        total, values = zeros(self._leaves), []
        for chunk, weight in zip(self._chunks, weights, strict=True):
            value, parts = self._slope(chunk, weights, weight)
            add(total, parts)
            values.append(value)
        return values, total

    def product(self, weights: Sequence[float], tangents: Parts) -> Parts:
        r"""Multiply by the Hessian of the weighted sum of all chunks' losses.

        With multipliers $\lambda$ the gradient is that of $\psi = \ell + \lambda S$ at
        fixed moments; its change along $(v, \sigma)$ acts on parameters directly and
        on moments, from where the adjoint carries it to parameters.
        """
        moved = self._statistics.tangent(self._leaves, tangents)
        weight_of = dict(zip(map(id, self._chunks), weights, strict=True))

        def source(chunk: Any, variables: Parts) -> tuple[Any, Parts, Parts]:
            weight = weight_of[id(chunk)]
            curve, _, shares = self._curve(chunk, variables, weights, weight)
            return curve.graph, [*tangents, *moved], shares

        return self._statistics.pull(self._leaves, source)

    def _forward(self, chunk: Any) -> tuple[Tensor, Parts]:
        return self._statistics.forward(chunk, self._statistics.variables())

    def _slope(
        self, chunk: Any, weights: Sequence[float], weight: float
    ) -> tuple[Tensor, Parts]:
        """Return a chunk's loss and its part of the gradient, and free its graph."""
        variables = self._statistics.variables()
        curve, value, _ = self._curve(chunk, variables, weights, weight)
        return value, [part.detach() for part in curve.gradient[: len(self._leaves)]]

    def _curve(
        self, chunk: Any, variables: Parts, weights: Sequence[float], weight: float
    ) -> tuple[Curve, Tensor, Parts]:
        multipliers = self._solved(weights)
        value, shares = self._statistics.forward(chunk, variables)
        pairs = zip(multipliers, shares, strict=True)
        pulled = torch.stack([(m * share).sum() for m, share in pairs]).sum()
        # In a chunk where nothing counts, leaves after all norms have no influence.
        curve = Curve(
            weight * value + pulled, [*self._leaves, *variables], constant=weight == 0
        )
        return curve, value.detach(), shares

    def _solved(self, weights: Sequence[float]) -> Parts:
        """Return the multipliers of the moments, computed once."""
        weight_of = dict(zip(map(id, self._chunks), weights, strict=True))

        def source(chunk: Any, variables: Parts) -> tuple[Parts, Parts, Parts]:
            value, shares = self._statistics.forward(chunk, variables)
            return [weight_of[id(chunk)] * value], [torch.ones_like(value)], shares

        if self._multipliers is None:
            self._multipliers = self._statistics.solve(source)
        return self._multipliers
