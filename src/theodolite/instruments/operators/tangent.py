"""The tangent kernel of a model as an operator on its outputs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, cast

from torch import Tensor, nn

from theodolite.core import NormMode
from theodolite.instruments.model.objective import Batch
from theodolite.instruments.operators.jacobian import Jacobian
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.operators.parameter_operator import made_far
from theodolite.instruments.passes.batches import Batches
from theodolite.instruments.team.crews import Executor
from theodolite.instruments.team.processes import Team


class TangentKernel(Operator):
    r"""$DF\,DF^\top$: outputs by outputs, through the parameters.

    A product is one of the Jacobian's transpose and one of the Jacobian; nothing is
    formed. Rows are outputs, sample by sample, batch by batch.

    Args:
        model: Any module; left as found by every product.
        batches: Inputs, a pair (inputs, …) or a mapping of keyword arguments, or a
            list or DataLoader of them. A list of tensors is one batch, as loaders
            make it of a pair; of two tensors alike it is refused.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.
        outputs: ``outputs(model, batch) -> tensor``; the model's own by default.
        micro_batch: Samples a pass at most; saves memory, changes nothing else.
        graph_bytes: Memory that graphs may take; most of what is free by default.
        team: Who else holds batches, where this process holds its share of them; rows
            are the outputs of all, rank after rank.
        executor: Has the products made by processes elsewhere, such as
            ``RayCluster``; this one then holds no share.

    Attributes:
        jacobian: The Jacobian $DF$.
        norm_mode: As given.
        team: Those who multiply together.

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

    def __new__(
        cls, *given: Any, executor: Executor | None = None, **settings: Any
    ) -> Self:
        """Make the operator here, or have one made by an executor's crew."""
        if executor is None:
            return object.__new__(cls)
        return cast(Self, made_far(cls, given, executor, settings))

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
        executor: Executor | None = None,
    ) -> None:
        del executor  # where it is given, no operator is made here
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

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products within, which leaves it as found."""
        return self.jacobian.together()

    def remade(self, change: Callable[[Any], Any]) -> Operator | None:
        """Return the kernel of a changed model on changed data."""
        return self._remake(change)

    def matvec(self, vector: Tensor) -> Tensor:
        """Pull outputs back to parameters, and push those forward."""
        self.passes += 2
        with self.together():
            return self.jacobian.matvec(self.jacobian.rmatvec(vector))
