"""Set a model and its data up for an operator: look, group, forecast."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from theodolite.core import Exclusive, MeasurementError, NormMode

from ..distributed.processes import as_team
from . import forecast
from .batches import join_batches
from .graph_cache import GraphCache
from .graph_memory import GraphMemory
from .grouping import Chunk, Group, group_batches
from .inspection import norms_couple
from .prepared_model import PreparedModel
from .problem import Measurement, Problem
from .product_strategy import StrategyChoice
from .ranks import refuse_other_calls
from .separability import Separability
from .streams import StreamedBatches, partition_of


@dataclass(frozen=True, kw_only=True, eq=False)
class SetUp:
    """What operators on parameters start from.

    Attributes:
        prepared: The model and its data, with passes settled.
        retain: Whether the graphs of all chunks fit in memory together.
        offload: Whether graphs lie on the host.
        forecast_bytes: Memory that the largest pass takes at its peak, None where that
            could not be told.
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
        """Return where products keep the graphs that they share."""
        staying = list(self.prepared.model.parameters())
        return GraphCache(retain=self.retain, offload=self.offload, staying=staying)


def set_up(problem: Problem, measured: Measurement) -> SetUp:
    """Prepare a model, look at it, and decide what its passes take."""
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
    """Return the groups that products take, and the chunks of the others."""
    idle = [chunk for group in groups if not group.counts for chunk in group.chunks]
    return [group for group in groups if group.counts], idle


def _held(groups: Sequence[Group]) -> list[Group]:
    return [replace(one, chunks=tuple(c.held() for c in one.chunks)) for one in groups]


def _streams(prepared: PreparedModel) -> bool:
    """Whether any rank reads data again, which refuses changed data."""
    here = isinstance(prepared.items, StreamedBatches)
    return prepared.team.largest(here) > 0


def _refuse_to_part(prepared: PreparedModel, groups: Sequence[Group]) -> None:
    """Refuse statistics over several passes where a pass differentiates them.

    What a model passes back itself, it would pass back within each chunk alone.
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
