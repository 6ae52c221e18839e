"""What operators on parameter space share: names, blocks, and letting memory go."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode, unknown_name
from theodolite.instruments.differentiate.parts import Parts, flat
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.operators.twin import Several
from theodolite.instruments.passes.batches import are_two_alike
from theodolite.instruments.passes.graph_cache import GraphCache
from theodolite.instruments.passes.set_up import SetUp
from theodolite.instruments.team.crews import Executor, check_executor
from theodolite.instruments.team.processes import Team
from theodolite.instruments.team.vectors import agreed


class ParameterOperator(Operator):
    """An operator whose columns are parameters of a model.

    It follows the model: after a training step products are those at the new
    parameters. Graphs are kept between products; ``close()`` or leaving a ``with``
    lets them go, and a later product builds them again.

    Attributes:
        layout: Names and shapes of the parameters along the columns.
        norm_mode: Statistics that normalisation layers use.
        partition: Samples of each batch as given; under norm mode ``batch`` it is a
            part of what is measured.
        micro_batch: Samples a pass, where memory was saved.
        seed: Seed of whatever the model draws.
        forecast_bytes: Memory that the largest pass was forecast to take at its peak,
            None where that could not be told.
        coupled: Whether batch statistics run over several passes, on any rank.
        team: Who else holds batches; all of them multiply the same vectors together.
        title: Name of the matrix, for methods of readings.
    """

    title = "Hessian"

    def __new__(
        cls, *given: Any, executor: Executor | None = None, **settings: Any
    ) -> Self:
        """Make the operator here, or have one made by an executor's crew."""
        if executor is None:
            return object.__new__(cls)
        return cast(Self, made_far(cls, given, executor, settings))

    def __init__(self, given: SetUp, cache: GraphCache[Any]) -> None:
        self._prepared, self._kept = given.prepared, cache
        self._prepared.when_changed(cache.clear)
        self._prepared.when_changed(self._forget_noise)
        self.layout = self._prepared.layout
        self.dtype, self.device = self._prepared.dtype, self._prepared.device
        self.norm_mode: NormMode = self._prepared.mode
        self.partition = given.partition
        self.micro_batch = given.micro_batch
        self.seed = given.seed
        self.coupled = given.coupled
        self.team: Team = self._prepared.team
        self.forecast_bytes = given.forecast_bytes
        self._sizes = [leaf.numel() for leaf in self._prepared.leaves]
        self.passes = 0
        self._remake: Callable[[Callable[[Any], Any]], Operator] | None = None

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products within, which leaves it as found.

        Only where its graphs are kept: what is run again starts as found. Ranks, which
        may keep them or not, open it product by product, to look at it together.
        """
        kept = self._kept.keeps(self._prepared.groups) and not self.team.several
        return self._prepared.together() if kept else nullcontext()

    def remade(self, change: Callable[[Any], Any]) -> Operator | None:
        """Return the operator of a changed model and changed data."""
        return None if self._remake is None else self._remake(change)

    @property
    def graphs_held(self) -> int:
        """How many graphs are kept between products."""
        return len(self._kept)

    @property
    def way(self) -> str:
        """How products are taken: as graphs, or over chunks that share statistics.

        ``graphs``, ``graphs on the host``, ``in step``, ``in step on the host`` or ``by
        turns``; for chunks the choice is made with the first product, and until then
        it is ``chunks``.
        """
        coupled = [group for group in self._prepared.groups if group.coupled]
        if not coupled:
            return "graphs on the host" if self._kept.offload else "graphs"
        ways = {g.statistics.way for g in coupled if g.statistics is not None}
        return ", ".join(sorted(ways)) or "chunks"

    @property
    def way_reason(self) -> str:
        """Why chunks take turns, which costs a pass over all of them for every norm.

        Empty where they do not.
        """
        found = [group.statistics for group in self._prepared.groups]
        reasons = {joint.reason for joint in found if joint is not None}
        return "; ".join(sorted(reasons - {""}))

    @property
    def names(self) -> list[str]:
        """Names of the parameters, in order."""
        return [name for name, _ in self.layout]

    def split(self, vector: Tensor) -> dict[str, Tensor]:
        """Return a flat vector by parameter names, in the parameters' shapes."""
        if vector.shape != (sum(self._sizes),):
            raise MeasurementError(
                f"a vector of shape {tuple(vector.shape)} came, wanted is "
                f"({sum(self._sizes)},), one number a parameter"
            )
        with torch._C.DisableTorchFunction():  # modes would be asked about every part
            parts = vector.split(self._sizes)
            return {
                name: part.view(shape)
                for (name, shape), part in zip(self.layout, parts, strict=True)
            }

    def join(self, parts: Mapping[str, Tensor]) -> Tensor:
        """Return the flat vector of parts by name; parts left out are zero."""
        shapes = dict(self.layout)
        for name, part in parts.items():
            if name not in shapes:
                raise unknown_name("parameter", name, shapes)
            if tuple(part.shape) != shapes[name]:
                raise MeasurementError(
                    f"{name} has shape {shapes[name]}, and {tuple(part.shape)} came"
                )
        empty = torch.zeros((), dtype=self.dtype, device=self.device)
        return torch.cat(
            [
                parts.get(name, empty.expand(shape)).reshape(-1).to(empty)
                for name, shape in self.layout
            ]
        )

    def block(self, names: Sequence[str]) -> "Block":
        """Return the view of some parameters, sharing this operator's graphs."""
        return Block(self, names)

    @property
    def blocks(self) -> dict[str, "Block"]:
        """One view for each submodule that has parameters of its own, by its name."""
        owners: dict[str, list[str]] = {}
        for name in self.names:
            owners.setdefault(name.rpartition(".")[0], []).append(name)
        return {owner: self.block(names) for owner, names in owners.items()}

    def close(self) -> None:
        """Let the graphs go that are kept between products."""
        self._kept.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def block_matvec(self, places: Sequence[int], vector: Tensor) -> Tensor:
        """Multiply the block of some parameters, given by their places."""

    def _forget_noise(self) -> None:
        self.noise_norm = None

    @property
    def model(self) -> nn.Module:
        """The model, unwrapped if it was compiled."""
        return self._prepared.model

    def changed_data(self, change: Callable[[Any], Any]) -> Any:
        """Return the batches, changed one by one."""
        items = self._prepared.items
        # A loader's pair may be one that is refused where it is given by itself.
        alone = len(items) == 1 and not are_two_alike(items[0])
        return change(items[0]) if alone else Several(items, change)

    def _parts(self, vector: Tensor) -> Parts:
        return list(self.split(agreed(vector.detach(), self.team)).values())

    def _summed(self, parts: Parts) -> Tensor:
        """Return the sum of all ranks' parts as one vector."""
        return self.team.sum_(flat(parts))

    def _embedded(self, places: Sequence[int], vector: Tensor) -> Tensor:
        """Return a block's vector among zeros for all other parameters."""
        cut = vector.split([self._sizes[i] for i in places])
        parts = dict(zip(places, cut, strict=True))
        return torch.cat(
            [
                parts[i] if i in parts else vector.new_zeros(size)
                for i, size in enumerate(self._sizes)
            ]
        )

    def _extracted(self, places: Sequence[int], vector: Tensor) -> Tensor:
        parts = vector.split(self._sizes)
        return flat([parts[i] for i in places])


def made_far(
    kind: type[Operator],
    given: Sequence[Any],
    executor: Executor,
    settings: Mapping[str, Any],
) -> Operator:
    """Return what stands for an operator of an executor's crew.

    What the operator does not take is refused here, before anything is sent.

    Args:
        kind: Class of the operator.
        given: Its model and batches, where they came by place.
        executor: Who has the crew.
        settings: All else, the model and batches too where they came by name.
    """
    from theodolite.instruments.operators.far import FarOperator

    check_executor(executor)
    try:
        inspect.signature(kind.__init__).bind(None, *given, **settings)
    except TypeError as error:
        raise TypeError(f"{kind.__name__}: {error}") from None
    named = dict(zip(("model", "batches"), given, strict=False)) | dict(settings)
    subject = named.pop("model"), named.pop("batches")
    return FarOperator(kind, *subject, executor=executor, settings=named)


class Block(Operator):
    """The part of an operator that belongs to some parameters.

    Of a symmetric operator it is the diagonal block, of a Jacobian the columns.
    """

    def __init__(self, whole: ParameterOperator, names: Sequence[str]) -> None:
        known = whole.names
        for name in names:
            if name not in known:
                raise unknown_name("parameter", name, known)
        if not names or len(set(names)) < len(names):
            raise MeasurementError(
                "a block names each parameter once, and at least one"
            )
        self._whole = whole
        self._places = [known.index(name) for name in names]
        self.layout = tuple(whole.layout[i] for i in self._places)
        size = sum(torch.Size(shape).numel() for _, shape in self.layout)
        self.symmetric = whole.symmetric
        self.shape = (size if whole.symmetric else whole.shape[0], size)
        self.dtype, self.device = whole.dtype, whole.device
        self.norm_mode, self.partition = whole.norm_mode, whole.partition
        self.seed, self.team = whole.seed, getattr(whole, "team", None)

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products within, which leaves it as found."""
        return self._whole.together()

    def free_elsewhere(self) -> int | None:
        """Return the memory that is free where products are made; None for here."""
        return self._whole.free_elsewhere()

    def remade(self, change: Callable[[Any], Any]) -> Operator | None:
        """Return the block of the changed operator."""
        found = self._whole.remade(change)
        names = [name for name, _ in self.layout]
        return found.block(names) if isinstance(found, ParameterOperator) else None

    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        return self._whole.block_matvec(self._places, vector)

    def rmatvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector into the transpose."""
        if self.symmetric:
            return self.matvec(vector)
        self.passes += 1
        return self._whole._extracted(self._places, self._whole.rmatvec(vector))
