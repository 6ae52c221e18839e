"""The Jacobian of outputs by parameters, and the tangent kernel, as operators."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Unpack

import torch
from torch import Tensor

from ..differentiate.derivatives import Map, flat
from ..distributed.processes import agreed
from ..model.objective import checked_outputs, outputs_of
from ..passes.batches import Batches, refuse_two_alike
from ..passes.problem import Measurement, Model, PassSettings, Problem, with_settings
from .operator import Operator
from .output_curvature import OutputMap
from .parameter_operator import ParameterOperator


class Jacobian(ParameterOperator):
    """Derivatives of outputs by parameters; rows are outputs, in the order of the data.

    Args:
        model: Any module, never changed; or a :class:`Problem`.
        batches: Inputs, a pair (inputs, …) or a mapping of keyword arguments, or a
            list or DataLoader of them. A list of tensors is one batch; two tensors of
            one shape are refused.
        settings: Those of :class:`Problem` that need no loss. Rows are the outputs of
            all ranks of ``team``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> layer = nn.Linear(2, 1, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
        >>> Jacobian(layer, x, norm_mode="batch").dense()
        array([[1., 2., 1.],
               [3., 4., 1.]])
    """

    title = "Jacobian"

    @with_settings
    def __init__(
        self,
        model: Model | Problem,
        batches: Batches | None = None,
        **settings: Unpack[PassSettings],
    ) -> None:
        super().__init__(model, batches, **settings)
        self._map = OutputMap(self._prepared)
        self._shapes = self._map.shapes()
        rows = sum(shape.numel() for shape in self._shapes)
        counts = [int(n) for n in self.team.gather(torch.tensor(rows, device="cpu"))]
        before = sum(counts[: self.team.rank])
        self._own = slice(before, before + rows)
        self.shape = (sum(counts), sum(self._sizes))

    def _measurement(self) -> Measurement:
        if self.problem.outputs is None:
            refuse_two_alike(self.problem.batches)
        pick = self.problem.outputs or outputs_of
        return Measurement(
            kind=type(self).__name__,
            measure=lambda network, batch: checked_outputs(pick(network, batch)),
            build=lambda outputs, leaves: Map(outputs, leaves).prepare(),
            walk=lambda graph, _, tangents: graph.through(tangents),
        )

    def product(self, vector: Tensor) -> Tensor:
        """Return the change of the outputs along a vector of parameters."""
        self.passes += 1
        with self._prepared.session():
            self._check_once()
            pushed = self._map.push(self._parts(vector))
            return self._all_rows([change for _, _, change in pushed])

    def transposed_product(self, vector: Tensor) -> Tensor:
        """Pull a vector of outputs back to parameters."""
        self.passes += 1
        with self._prepared.session():
            own = agreed(vector.detach(), self.team)[self._own]
            parts = own.split([shape.numel() for shape in self._shapes])
            pairs = zip(parts, self._shapes, strict=True)
            pulled = self._map.pull([part.reshape(shape) for part, shape in pairs])
            return self._summed(pulled)

    def outputs(self) -> Tensor:
        """Return the outputs of all the data, flat, in the order of rows."""
        with self._prepared.session():
            return self._all_rows(self._map.outputs())

    def _all_rows(self, parts: Sequence[Tensor]) -> Tensor:
        return self.team.concatenate(flat(parts))


class TangentKernel(Operator):
    r"""$DF\,DF^\top$: outputs by outputs, through the parameters.

    A product is one with the Jacobian's transpose and one with the Jacobian; no matrix
    is formed. Rows are outputs, in the order of the data.

    Args:
        model: Any module, never changed; a :class:`Problem`; or a :class:`Jacobian`.
        batches: As for :class:`Jacobian`.
        settings: As for :class:`Jacobian`.

    Attributes:
        jacobian: The Jacobian $DF$.
        norm_mode: As given.
        team: Processes that multiply together.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> layer = nn.Linear(2, 1, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
        >>> TangentKernel(layer, x, norm_mode="batch").dense()
        array([[ 6., 12.],
               [12., 26.]])
    """

    symmetric = True
    title = "tangent kernel"

    @with_settings
    def __init__(
        self,
        model: Model | Problem | Jacobian,
        batches: Batches | None = None,
        **settings: Unpack[PassSettings],
    ) -> None:
        given = isinstance(model, Jacobian)
        self.jacobian = model if given else Jacobian(model, batches, **settings)
        self.norm_mode, self.team = self.jacobian.norm_mode, self.jacobian.team
        self.shape = (self.jacobian.shape[0], self.jacobian.shape[0])
        self.torch_dtype, self.device = self.jacobian.torch_dtype, self.jacobian.device

    @property
    def changes(self) -> int:
        """How often products met a model or data that had changed."""
        return self.jacobian.changes

    @property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return self.jacobian.norm_layers

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products inside; restore it at the end."""
        return self.jacobian.together()

    @property
    def source(self) -> Jacobian:
        """The Jacobian."""
        return self.jacobian

    def with_source(self, source: Any) -> Operator:
        """Return the kernel of another Jacobian."""
        return TangentKernel(source)

    def product(self, vector: Tensor) -> Tensor:
        """Pull outputs back to parameters, and push the result forward."""
        self.passes += 2
        with self.together():
            return self.jacobian.product(self.jacobian.transposed_product(vector))
