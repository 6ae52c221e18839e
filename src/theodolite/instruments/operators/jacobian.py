"""The Jacobian of a model's outputs by its parameters, as an operator."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from theodolite.core import NormMode
from theodolite.instruments.differentiate.derivatives import Map
from theodolite.instruments.differentiate.parts import flat
from theodolite.instruments.model.objective import Batch, checked_outputs, outputs_of
from theodolite.instruments.model.randomness import Randomness
from theodolite.instruments.operators.output_map import OutputMap
from theodolite.instruments.operators.parameter_operator import ParameterOperator
from theodolite.instruments.passes.batches import Batches, refuse_two_alike
from theodolite.instruments.passes.graph_cache import GraphCache
from theodolite.instruments.passes.set_up import set_up
from theodolite.instruments.team.crews import Executor
from theodolite.instruments.team.processes import Team
from theodolite.instruments.team.vectors import agreed


class Jacobian(ParameterOperator):
    """Outputs by parameters: rows are outputs, sample by sample, batch by batch.

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
        seed: Seed of whatever the model draws.
        randomness: ``fixed`` allows dropout and fixes its masks by the seed; under
            ``eval`` dropout is off.
        max_batches: Batches to take at most, from the first.
        team: Who else holds batches, where this process holds its share of them; rows
            are the outputs of all, rank after rank.
        executor: Has the products made by processes elsewhere, such as
            ``RayCluster``; this one then holds no share.

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
        executor: Executor | None = None,
    ) -> None:
        del executor  # where it is given, no operator is made here
        if outputs is None:
            refuse_two_alike(batches)
        pick = outputs or outputs_of
        given = set_up(
            model,
            batches,
            kind=type(self).__name__,
            measure=lambda network, batch: checked_outputs(pick(network, batch)),
            build=lambda found, leaves: Map(found, leaves).prepare(),
            walk=lambda found, _: found.walk(),
            norm_mode=norm_mode,
            params=params,
            mass=None,
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

    def matvec(self, vector: Tensor) -> Tensor:
        """Return the outputs' change along a vector of parameters."""
        self.passes += 1
        with self._prepared.session():
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

    def outputs(self) -> Tensor:
        """Return the outputs of all the data, flat, as the rows go."""
        with self._prepared.session():
            return self._all_rows(self._map.outputs())

    def _all_rows(self, parts: Sequence[Tensor]) -> Tensor:
        return self.team.concatenate(flat(parts))
