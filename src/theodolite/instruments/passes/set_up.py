"""Set up a model and its data for an operator: check, group, forecast, keep graphs."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from theodolite.core import Exclusive, MeasurementError, NormMode, derive

from ..distributed.processes import as_team
from ..model.objective import Batch, check_finite
from ..model.randomness import Draws, check_repeats, reseed
from ..norms.batch_norm_calls import (
    BatchNormCalls,
    NormCall,
    batch_statistics,
    own_statistics,
)
from ..norms.tensor_store import offloaded
from . import forecast
from .batches import join_batches, samples_in, split_batch
from .graph_memory import GraphMemory
from .grouping import Chunk, Group, Mass, group_batches, mass_of, no_sample_counts
from .prepared_model import PreparedModel
from .problem import Measurement, Problem
from .product_strategy import StrategyChoice
from .ranks import refuse_other_calls
from .separability import Separability
from .streams import StreamedBatches, partition_of

Graph = TypeVar("Graph")


class GraphCache(Generic[Graph]):
    """Graphs that products share, until the model changes or memory is needed.

    Args:
        retain: Whether the graphs of all chunks fit in memory together.
        offload: Whether their tensors are kept on the host.
        staying: Tensors that exist anyway, such as parameters.
    """

    def __init__(
        self, *, retain: bool, offload: bool = False, staying: Sequence[Tensor] = ()
    ) -> None:
        self._retain, self.offload, self._staying = retain, offload, staying
        self._graphs: dict[Chunk, Graph] = {}

    def keeps(self, groups: Iterable[Group]) -> bool:
        """Whether the graphs of all these groups are kept once they are built."""
        return self._retain and not any(group.coupled for group in groups)

    def graph(self, group: Group, chunk: Chunk, build: Callable[[], Graph]) -> Graph:
        """Return a chunk's graph, and build it if needed.

        Where batch statistics run over several chunks, graphs are never kept: those
        groups are cut since their graphs do not fit.
        """
        if chunk in self._graphs:
            return self._graphs[chunk]
        with offloaded(self._staying) if self.offload else nullcontext():
            graph = build()
        if self._retain and not group.coupled:
            self._graphs[chunk] = graph
        return graph

    def kept(self, chunk: Chunk) -> Graph | None:
        """Return a chunk's graph if it is kept."""
        return self._graphs.get(chunk)

    def __len__(self) -> int:
        """Return the number of kept graphs."""
        return len(self._graphs)

    def clear(self) -> None:
        """Free all graphs."""
        self._graphs.clear()


@dataclass(frozen=True, kw_only=True, eq=False)
class SetUp:
    """The state that operators on parameters start from.

    Attributes:
        prepared: The model and its data, with passes settled.
        retain: Whether the graphs of all chunks fit in memory together.
        offload: Whether graphs are kept on the host.
        forecast_bytes: Memory that the largest pass takes at its peak, None where that
            is unknown.
        partition: Samples of each batch as given, those of all ranks.
        coupled: Whether batch statistics run over several passes, on any rank.
    """

    prepared: PreparedModel
    retain: bool
    offload: bool
    forecast_bytes: int | None
    partition: tuple[int | None, ...]
    coupled: bool

    def graphs(self) -> GraphCache[Any]:
        """Return the cache for graphs that products share."""
        staying = list(self.prepared.model.parameters())
        return GraphCache(retain=self.retain, offload=self.offload, staying=staying)


def set_up(problem: Problem, measured: Measurement) -> SetUp:
    """Prepare a model, check it, and decide what its passes run on."""
    team, seed, micro_batch = as_team(problem.team), problem.seed, problem.micro_batch
    mass, randomness = measured.mass, problem.randomness
    with Exclusive(), team.reporting_errors():
        prepared = PreparedModel(problem, measured)
        refuse_other_calls(
            team,
            measured.kind,
            prepared.mode,
            prepared.chosen,
            mass is None,
            seed,
            randomness,
        )
        allowed = forecast.budget(problem.graph_bytes, prepared.device)
        memory = GraphMemory(prepared=prepared, allowed=allowed)
        if randomness == "refuse" or prepared.mode is NormMode.EVAL:
            prepared.without_dropout()
        look = partial(norms_couple, prepared)
        norms = prepared.try_out(look)
        with prepared.sheltered():
            Separability(prepared=prepared, fits=memory.fits).check()
            several = norms and micro_batch is None and len(prepared.items) > 1
            # One graph of what ranks hold apart is nowhere.
            offload = several and prepared.mode is NormMode.FULL and not team.several
            offload = offload and StrategyChoice(memory=memory).offloads()
            group = partial(
                group_batches,
                mode=prepared.mode,
                norms=norms,
                micro_batch=micro_batch,
                mass=mass,
                seed=seed,
                team=team,
            )
            groups, idle = _parted(
                group(prepared.items, joined=lambda: memory.joined(offload=offload))
            )
            # Batches that cannot be joined share no graph, on the host or elsewhere.
            offload = offload and not any(one.coupled for one in groups)
            _refuse_to_part(prepared, groups)
            fits, largest = (True, None) if offload else memory.decide(groups)
        retain = fits and micro_batch is None
        together = several and not any(one.coupled for one in groups)

        def regroup() -> tuple[list[Group], list[Chunk]]:
            """Weigh and join data again that changed in place."""
            items = list(prepared.items)
            groups = group(
                items, joined=lambda: join_batches(items) if together else None
            )
            return _parted(_held(groups) if retain else groups)

        prepared.settle(
            # Graphs that are kept hold the data anyway.
            _held(groups) if retain else groups,
            norms=norms,
            room=memory.room(largest),
            idle=idle,
            regroup=None if _streams(prepared) else regroup,
            look=look,
        )
        return SetUp(
            prepared=prepared,
            retain=retain,
            offload=offload,
            forecast_bytes=largest,
            partition=_partition(prepared),
            coupled=team.largest(any(one.coupled for one in groups)) > 0,
        )


def _parted(groups: Sequence[Group]) -> tuple[list[Group], list[Chunk]]:
    """Return the groups that products use, and the chunks of the others."""
    idle = [chunk for group in groups if not group.counts for chunk in group.chunks]
    return [group for group in groups if group.counts], idle


def _held(groups: Sequence[Group]) -> list[Group]:
    return [replace(one, chunks=tuple(c.held() for c in one.chunks)) for one in groups]


def _streams(prepared: PreparedModel) -> bool:
    """Whether any rank reads data again, which refuses changed data."""
    here = isinstance(prepared.items, StreamedBatches)
    return prepared.team.largest(here) > 0


def _refuse_to_part(prepared: PreparedModel, groups: Sequence[Group]) -> None:
    """Refuse statistics over several passes if the model differentiates them itself.

    The model's own backward pass would see only one chunk at a time.
    """
    coupled = any(group.coupled for group in groups)
    if prepared.team.largest(coupled and prepared.measure.differentiates):
        raise MeasurementError(
            "the model or its loss differentiates in its own pass, and batch "
            "statistics run over several, so that what it differentiates would end at "
            "each: pass one batch without micro_batch or team, or norm mode 'frozen' "
            "or 'eval'"
        )


def _partition(prepared: PreparedModel) -> tuple[int | None, ...]:
    """Return the samples of each batch, rank after rank."""
    counts = [-1 if n is None else n for n in partition_of(prepared.items)]
    gathered = prepared.team.concatenate(torch.tensor(counts)).tolist()
    return tuple(None if n < 0 else n for n in gathered)


def norms_couple(prepared: PreparedModel) -> bool:
    """Run the first samples twice and refuse what cannot be measured.

    Returns:
        Whether norms take batch statistics, which couple samples.
    """
    problem, micro_batch = prepared.problem, prepared.problem.micro_batch
    mass = prepared.measured.mass if prepared.measured.scalar else None
    first, counts = _first_that_counts(prepared.items, micro_batch, mass)
    if not prepared.team.largest(counts):
        raise no_sample_counts()
    probe = Chunk(data=first, seed=derive(problem.seed, "batch", 0))
    act = _statistics(prepared, micro_batch)

    def begin() -> None:
        prepared.renew()
        reseed(probe.seed)

    begin()
    draws = Draws()
    with torch.no_grad(), BatchNormCalls(act) as calls:
        value = prepared.measure.try_out(prepared.model, first, begin=begin)
        value = prepared.check(value) if counts else value
    if calls.calls and prepared.mode is NormMode.EVAL:
        raise MeasurementError(
            "a batch norm takes batch statistics also in eval mode: use norm mode "
            "'batch' or 'full'"
        )
    prepared.measure.differentiates |= calls.transformed
    if counts:
        check_finite(value)
    if draws.happened():
        _check_random(prepared)
    if counts:
        with torch.no_grad(), BatchNormCalls(act):
            check_repeats(value, prepared.run(probe))
    return calls.calls > 0


def _first_that_counts(
    items: Sequence[Batch], micro_batch: int | None, mass: Mass | None
) -> tuple[Batch, bool]:
    """Return the first samples on which the loss is a number, or any, and which."""
    for item in items:
        for part in _parts_of(item, micro_batch):
            if mass is None or samples_in(part) is None or mass_of(part, mass) > 0:
                return part, True
    return _parts_of(items[0], micro_batch)[0], False


def _parts_of(batch: Batch, micro_batch: int | None) -> Sequence[Batch]:
    """Return the parts of a batch that passes run on."""
    return [batch] if micro_batch is None else split_batch(batch, micro_batch)


def _statistics(
    prepared: PreparedModel, micro_batch: int | None
) -> Callable[[NormCall], Tensor]:
    # A chunk may hold one sample, whose own statistics nobody asked for; and so may a
    # batch where statistics are those of all.
    cut = prepared.joins or micro_batch is not None
    return own_statistics if cut else batch_statistics


def _check_random(prepared: PreparedModel) -> None:
    if prepared.problem.randomness == "refuse":
        raise MeasurementError(
            "the model draws random numbers, so the loss is random: switch that "
            "off, or pass randomness='fixed' to fix what it draws by the seed"
        )
    if prepared.problem.micro_batch is not None or prepared.joins:
        raise MeasurementError(
            "the model draws random numbers, and cutting or joining batches would "
            "draw others: leave out micro_batch, and pass one batch, or norm mode "
            "'batch' or 'eval'"
        )
