"""Chunks one after the other: the memory of one, one pass over all of them per norm."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..differentiate.derivatives import Curve, Map
from ..differentiate.parts import Parts, add, zeros
from ..distributed.processes import Team
from .full_statistics import FullStatistics, Moments


class SequentialChunks:
    """Moments of every batch-norm call over several chunks, and all derivatives.

    Args:
        chunks: Pieces of the data.
        run: Runs the model on a chunk and returns what is measured.
        leaves: Parameters to differentiate by.
        team: Who else holds chunks; what is pulled back is this process's share.
        reason: Why these chunks do not go in lockstep.
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
        """Moments of all the data, a call each."""
        return self._statistics.known

    def outputs(self) -> list[Tensor]:
        """Return what is measured of each chunk."""
        with torch.no_grad():
            return [self._forward(chunk)[0] for chunk in self._chunks]

    def push(self, tangents: Parts) -> list[tuple[Tensor, Tensor]]:
        """Return what is measured of each chunk, and its change along tangents."""
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
        """Return the losses of all chunks, and the gradient of their weighed sum."""
        total, values = zeros(self._leaves), []
        for chunk, weight in zip(self._chunks, weights, strict=True):
            value, parts = self._slope(chunk, weights, weight)
            add(total, parts)
            values.append(value)
        return values, total

    def product(self, weights: Sequence[float], tangents: Parts) -> Parts:
        r"""Multiply the Hessian of the weighed sum of all chunks' losses.

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
        """Return a chunk's loss and its part of the gradient; its graph goes."""
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
        # Where nothing counts, leaves behind all norms play no part in a chunk.
        curve = Curve(
            weight * value + pulled, [*self._leaves, *variables], constant=weight == 0
        )
        return curve, value.detach(), shares

    def _solved(self, weights: Sequence[float]) -> Parts:
        """Return the multipliers of the moments, solved for once."""
        weight_of = dict(zip(map(id, self._chunks), weights, strict=True))

        def source(chunk: Any, variables: Parts) -> tuple[Parts, Parts, Parts]:
            value, shares = self._statistics.forward(chunk, variables)
            return [weight_of[id(chunk)] * value], [torch.ones_like(value)], shares

        if self._multipliers is None:
            self._multipliers = self._statistics.solve(source)
        return self._multipliers
