"""Set a model and its data up for an operator: look, group, forecast."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import NormMode
from theodolite.instruments.model.objective import Batch
from theodolite.instruments.model.randomness import Randomness, check_randomness
from theodolite.instruments.passes import forecast
from theodolite.instruments.passes.batches import Batches
from theodolite.instruments.passes.graph_cache import GraphCache
from theodolite.instruments.passes.graph_memory import Build, GraphMemory, Walk
from theodolite.instruments.passes.grouping import (
    Chunk,
    Group,
    Mass,
    group_batches,
    is_separable,
    not_separable,
)
from theodolite.instruments.passes.inspection import norms_couple
from theodolite.instruments.passes.prepared_model import PreparedModel
from theodolite.instruments.passes.streams import partition_of
from theodolite.instruments.passes.whole_data import WholeData
from theodolite.instruments.team.processes import as_team


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
        micro_batch: Samples a pass at most.
        seed: Seed of whatever the model draws.
        coupled: Whether batch statistics run over several passes, on any rank.
    """

    prepared: PreparedModel
    retain: bool
    offload: bool
    forecast_bytes: int | None
    partition: tuple[int | None, ...]
    micro_batch: int | None
    seed: int
    coupled: bool

    def graphs(self) -> GraphCache[Any]:
        """Return where products keep the graphs that they share."""
        staying = list(self.prepared.model.parameters())
        return GraphCache(retain=self.retain, offload=self.offload, staying=staying)


def set_up(
    model: nn.Module,
    batches: Batches,
    *,
    measure: Callable[[nn.Module, Batch], Tensor],
    build: Build,
    walk: Walk,
    norm_mode: NormMode | str,
    params: Sequence[str] | None,
    mass: Mass | None,
    scalar: bool,
    micro_batch: int | None = None,
    graph_bytes: int | None = None,
    seed: int = 0,
    randomness: Randomness = "refuse",
    max_batches: int | None = None,
    callables: Sequence[Callable[..., object]] = (),
    check: Callable[[Tensor], Tensor] | None = None,
    team: Any = None,
) -> SetUp:
    """Prepare a model, look at it, and decide what its passes take.

    Args:
        model: Any module; a compiled one is unwrapped.
        batches: What :func:`read_batches` takes.
        measure: Runs the model on a batch; returns what is differentiated.
        build: Builds, of that and the leaves, the graph that products need.
        walk: Makes a product of such a graph and its chunk, for what that takes.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.
        mass: Share of a batch in the mean of all, None for a sum.
        scalar: Whether a loss is measured, or outputs.
        micro_batch: Samples a pass at most, to save memory.
        graph_bytes: Memory that graphs may take; most of what is free by default.
        seed: Seed of whatever the model draws.
        randomness: Refuse models that draw, or fix what they draw by the seed.
        max_batches: Batches to take at most.
        callables: Further code that runs in sessions, such as a loss of outputs.
        check: Returns what was measured, or says why it is of no use.
        team: Who else holds batches: a team, a process group, True for all processes.
    """
    team = as_team(team)
    with team.telling():
        check_randomness(randomness)
        prepared = PreparedModel(
            model,
            batches,
            measure=measure,
            norm_mode=norm_mode,
            params=params,
            max_batches=max_batches,
            callables=callables,
            check=check,
            team=team,
        )
        allowed = forecast.budget(graph_bytes, prepared.device)
        memory = GraphMemory(prepared=prepared, build=build, walk=walk, allowed=allowed)
        if randomness == "refuse" or prepared.mode is NormMode.EVAL:
            prepared.without_dropout()
        norms = prepared.try_out(
            lambda: norms_couple(
                prepared,
                micro_batch=micro_batch,
                mass=mass if scalar else None,
                seed=seed,
                randomness=randomness,
            )
        )
        with prepared.sheltered():
            several = norms and micro_batch is None and len(prepared.items) > 1
            # One graph of what ranks hold apart is nowhere.
            offload = several and prepared.mode is NormMode.FULL and not team.several
            offload = offload and WholeData(memory=memory).offloads()
            groups = group_batches(
                prepared.items,
                mode=prepared.mode,
                norms=norms,
                micro_batch=micro_batch,
                mass=mass,
                seed=seed,
                joined=lambda: memory.joined(offload=offload),
                team=team,
            )
            groups, idle = _parted(groups)
            # Batches that cannot be joined share no graph, on the host or elsewhere.
            offload = offload and not any(group.coupled for group in groups)
            cut = micro_batch is not None or prepared.joins
            first, run = prepared.items[0], prepared.run
            if team.largest(cut and not is_separable(first, run, mass, scalar)):
                raise not_separable()
            fits, largest = (True, None) if offload else memory.decide(groups)
        if fits and micro_batch is None:
            # Graphs that are kept hold the data anyway.
            groups = [
                replace(g, chunks=tuple(c.held() for c in g.chunks)) for g in groups
            ]
        prepared.settle(groups, norms=norms, room=memory.room(largest), idle=idle)
        return SetUp(
            prepared=prepared,
            retain=fits and micro_batch is None,
            offload=offload,
            forecast_bytes=largest,
            partition=_partition(prepared),
            micro_batch=micro_batch,
            seed=seed,
            coupled=team.largest(any(group.coupled for group in groups)) > 0,
        )


def _parted(groups: Sequence[Group]) -> tuple[list[Group], list[Chunk]]:
    """Return the groups that products take, and the chunks of the others."""
    idle = [chunk for group in groups if not group.counts for chunk in group.chunks]
    return [group for group in groups if group.counts], idle


def _partition(prepared: PreparedModel) -> tuple[int | None, ...]:
    """Return the samples of each batch, rank after rank."""
    counts = [-1 if n is None else n for n in partition_of(prepared.items)]
    found = prepared.team.concatenate(torch.tensor(counts)).tolist()
    return tuple(None if n < 0 else n for n in found)
