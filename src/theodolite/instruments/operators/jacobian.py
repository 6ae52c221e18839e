"""The Jacobian of outputs by parameters and the tangent kernel, as operators."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import NormMode

from ..differentiate.derivatives import Map
from ..differentiate.parts import flat
from ..distributed.processes import Team, agreed
from ..model.objective import Batch, checked_outputs, outputs_of
from ..model.randomness import Randomness
from ..passes.batches import Batches, refuse_two_alike
from ..passes.graph_cache import GraphCache
from ..passes.grouping import Chunk
from ..passes.set_up import set_up
from .derivative_check import CheckedFunction
from .operator import Operator
from .output_curvature import OutputMap
from .parameter_operator import ParameterOperator


class Jacobian(ParameterOperator):
    """Derivatives of outputs by parameters; rows are outputs, in the order of the data.

    Args:
        model: Any module; never changed.
        batches: Inputs, a pair (inputs, …) or a mapping of keyword arguments, or a
            list or DataLoader of them. A list of tensors is one batch; two tensors of
            one shape are refused.
        norm_mode: Statistics that normalisation layers use.
        outputs: ``outputs(model, batch) -> tensor``; the model's outputs by default.
        params, micro_batch, graph_bytes, seed, randomness, max_batches, team: As for
            :class:`Hessian`; rows are the outputs of all ranks.

    Example:
        >>> import torch
        >>> layer = nn.Linear(2, 1, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
        >>> Jacobian(layer, x, norm_mode="batch").dense()
        array([[1., 2., 1.],
               [3., 4., 1.]])
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        *,
        norm_mode: NormMode | str,
        params: Sequence[str] | None = None,
        outputs: Callable[[nn.Module, Batch], Tensor] | None = None,
        micro_batch: int | None = None,
        graph_bytes: int | None = None,
        seed: int = 0,
        randomness: Randomness = "refuse",
        max_batches: int | None = None,
        team: Team | None = None,
    ) -> None:
        if outputs is None:
            refuse_two_alike(batches)
        pick = outputs or outputs_of
        given = set_up(
            model,
            batches,
            kind=type(self).__name__,
            measure=lambda network, batch: checked_outputs(pick(network, batch)),
            build=lambda outputs, leaves: Map(outputs, leaves).prepare(),
            walk=lambda graph, _, tangents: graph.through(tangents),
            norm_mode=norm_mode,
            params=params,
            divisor=None,
            scalar=False,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            max_batches=max_batches,
            team=team,
        )
        maps: GraphCache[Map] = given.graphs()
        super().__init__(given, maps)
        self._map = OutputMap(given.prepared, maps)
        self._shapes = self._map.shapes()
        rows = sum(shape.numel() for shape in self._shapes)
        counts = [int(n) for n in self.team.gather(torch.tensor(rows))]
        before = sum(counts[: self.team.rank])
        self._own = slice(before, before + rows)
        self.shape = (sum(counts), sum(self._sizes))
        self._remake = lambda change: Jacobian(
            change(self.model),
            self.changed_data(change),
            norm_mode=norm_mode,
            params=self.names,
            outputs=outputs,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            team=team,
        )

    def matvec(self, vector: Tensor) -> Tensor:
        """Return the outputs' change along a vector of parameters."""
        self.passes += 1
        with self._prepared.session():
            self._check_once()
            pushed = self._map.push(self._parts(vector))
            return self._all_rows([change for _, _, change in pushed])

    def rmatvec(self, vector: Tensor) -> Tensor:
        """Pull a vector of outputs back to parameters."""
        self.passes += 1
        with self._prepared.session():
            own = agreed(vector.detach(), self.team)[self._own]
            parts = own.split([shape.numel() for shape in self._shapes])
            pairs = zip(parts, self._shapes, strict=True)
            pulled = self._map.pull([part.reshape(shape) for part, shape in pairs])
            return self._summed(pulled)

    def block_matvec(self, places: Sequence[int], vector: Tensor) -> Tensor:
        """Multiply the columns of some parameters."""
        return self.matvec(self._embedded(places, vector))

    def _differentiated(self, chunk: Chunk) -> list[CheckedFunction]:
        return self._map.differentiated(chunk)

    def outputs(self) -> Tensor:
        """Return the outputs of all the data, flat, as the rows go."""
        with self._prepared.session():
            return self._all_rows(self._map.outputs())

    def _all_rows(self, parts: Sequence[Tensor]) -> Tensor:
        return self.team.concatenate(flat(parts))


class TangentKernel(Operator):
    r"""$DF\,DF^\top$: outputs by outputs, through the parameters.

    A product is one with the Jacobian's transpose and one with the Jacobian; no matrix
    is formed. Rows are outputs, in the order of the data.

    Args:
        model: Any module; never changed.
        batches, norm_mode, params, outputs, micro_batch, graph_bytes, team: As for
            :class:`Jacobian`.

    Attributes:
        jacobian: The Jacobian $DF$.
        norm_mode: As given.
        team: Processes that multiply together.

    Example:
        >>> import torch
        >>> layer = nn.Linear(2, 1, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
        >>> TangentKernel(layer, x, norm_mode="batch").dense()
        array([[ 6., 12.],
               [12., 26.]])
    """

    symmetric = True
    title = "tangent kernel"

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        *,
        norm_mode: NormMode | str,
        params: Sequence[str] | None = None,
        outputs: Callable[[nn.Module, Batch], Tensor] | None = None,
        micro_batch: int | None = None,
        graph_bytes: int | None = None,
        team: Team | None = None,
    ) -> None:
        self.jacobian = Jacobian(
            model,
            batches,
            norm_mode=norm_mode,
            params=params,
            outputs=outputs,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            team=team,
        )
        self._remake = lambda change: TangentKernel(
            change(self.jacobian.model),
            self.jacobian.changed_data(change),
            norm_mode=norm_mode,
            params=self.jacobian.names,
            outputs=outputs,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            team=team,
        )
        self.norm_mode, self.team = self.jacobian.norm_mode, self.jacobian.team
        self.shape = (self.jacobian.shape[0], self.jacobian.shape[0])
        self.dtype, self.device = self.jacobian.dtype, self.jacobian.device

    @property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return self.jacobian.norm_layers

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products within; it is restored at the end."""
        return self.jacobian.together()

    def remade(self, change: Callable[[Any], Any]) -> Operator | None:
        """Return the kernel of a changed model on changed data."""
        return self._remake(change)

    def matvec(self, vector: Tensor) -> Tensor:
        """Pull outputs back to parameters, and push those forward."""
        self.passes += 2
        with self.together():
            return self.jacobian.matvec(self.jacobian.rmatvec(vector))
