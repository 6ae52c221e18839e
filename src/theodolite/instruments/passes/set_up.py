"""Prepare a model and its data for an operator: check, group and forecast."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from theodolite.core import Exclusive, MeasurementError, NormMode, derive

from ..differentiate.batch_norm_twice import NormCall, batch_statistics, own_statistics
from ..differentiate.derivatives import zeros
from ..differentiate.twice import BatchNormCalls
from ..distributed.processes import as_team
from ..model.objective import Batch, check_finite, samples_in, slice_batch, tensors_in
from ..model.process_state import Draws, check_repeats, reseed
from ..model.reachable_state import chosen_parameters
from ..norms.coupling import MemoryBudget
from .batches import join_batches, split_batch
from .forecast import (
    Saved,
    as_bytes,
    budget,
    few_samples,
    predict_bytes,
    refuse_beyond,
    saved_tensors,
)
from .grouping import (
    Chunk,
    Group,
    Mass,
    group_batches,
    no_sample_counts,
    partition_of,
)
from .live_memory import live_bytes, predict_peak
from .prepared_model import PassPlan, PreparedModel
from .problem import Measurement, Problem
from .product_strategy import StrategyChoice
from .ranks import refuse_other_calls
from .separability import Separability
from .streams import StreamedBatches

# Share of the forecast from a graph's size that products take if counted one by one.
_AT_LEAST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphMemory:
    """Forecasts graph memory by extrapolating from a few samples, in ``sheltered``.

    Attributes:
        prepared: The model and its data.
        allowed: Bytes that graphs may take.
    """

    prepared: PreparedModel
    allowed: int

    def joined(self, *, offload: bool = False) -> object | None:
        """Return all data as one batch, if it can be joined and its graph fits.

        Args:
            offload: Whether to keep the graph on the host, where it fits.
        """
        wanted = self.tightly(self.samples)
        fits = wanted is not None and wanted + self.copied() <= self.allowed
        return join_batches(list(self.prepared.items)) if fits or offload else None

    @property
    def samples(self) -> int:
        """Number of samples of all the data that can be counted."""
        return sum(count or 0 for count in partition_of(self.prepared.items))

    @property
    def on_gpu(self) -> bool:
        """Whether tensors take nearly all of the memory, as on a GPU."""
        return self.prepared.device.type == "cuda"

    def fits_together(self, sizes: Sequence[int], largest: int) -> bool:
        """Return whether the graphs of all chunks fit in memory.

        Args:
            sizes: Samples of each chunk.
            largest: Bytes of the graph of the largest.

        Raises:
            MeasurementError: If the largest alone does not fit.
        """
        refuse_beyond(
            largest,
            self.allowed,
            f"the graph of {max(sizes):,} samples",
            "pass micro_batch=… for fewer samples a pass, or raise graph_bytes",
        )
        return largest * sum(sizes) / max(sizes) <= self.allowed

    def fits(self, samples: int) -> bool:
        """Return whether the graph of so many samples is known to fit."""
        wanted = self.predict(samples)
        return wanted is not None and wanted <= self.allowed

    def room(self, largest: int | None) -> MemoryBudget:
        """Return the memory for chunks that run in lockstep.

        Args:
            largest: Bytes of the largest chunk's graph.
        """
        host = 0
        if self.prepared.device.type != "cpu":
            host = budget(None, torch.device("cpu"))
        return MemoryBudget(device=self.allowed, host=host, graph=largest)

    def predict(self, samples: int) -> int | None:
        """Return the forecast bytes of a product; None if a batch cannot be split."""
        most = samples_in(self.prepared.items[0]) or 0
        if not samples or not most:
            return None

        try:
            few = few_samples(samples, most)
            return predict_bytes({n: self.saved(n).bytes for n in few}, samples)
        except Exception:  # the model or loss accepts no fewer samples
            return None

    def tightly(self, samples: int) -> int | None:
        """Return the same forecast, closer if that can decide whether it fits.

        On a GPU memory is what tensors take, so that those of a product of a few
        samples, all with their own statistics, are counted one by one.
        """
        wanted = self.predict(samples)
        if wanted is None or not self.on_gpu:
            return wanted
        if _AT_LEAST * wanted <= self.allowed < wanted:
            return min(wanted, self.counted(samples) or wanted)
        return wanted

    def counted(self, samples: int) -> int | None:
        """Forecast the same from tensors alive in a product of a few samples."""

        def alive(count: int) -> list[int]:
            chunk, known = self._few(count)
            return live_bytes(lambda: self._product(chunk), known)

        try:
            most = samples_in(self.prepared.items[0]) or 1
            return predict_peak(alive, samples, at_most=most)
        except Exception:  # the same error, or tensors of an unknown kind
            return None

    def saved(self, count: int) -> Saved:
        """Return the memory that the graph of a few samples keeps."""
        chunk, known = self._few(count)
        prepared = self.prepared
        with saved_tensors(known) as saved:
            with BatchNormCalls(own_statistics):
                value = prepared.run(chunk, check=False)
            prepared.measured.build(value, prepared.leaves)
        return saved

    def copied(self) -> int:
        """Return the bytes that batches take again when they are joined."""
        first = self.prepared.items[0]
        here = sum(tensor.nbytes for tensor in tensors_in(first))
        several = len(self.prepared.items) > 1
        return here * self.samples // (samples_in(first) or 1) if several else 0

    def _few(self, count: int) -> tuple[Chunk, list[Tensor]]:
        """Return a few samples, and the tensors that exist anyway."""
        batch, model = self.prepared.items[0], self.prepared.model
        known = [*model.parameters(), *model.buffers(), *tensors_in(batch)]
        return Chunk(data=slice_batch(batch, 0, count)), known

    def _product(self, chunk: Chunk) -> object:
        measured, leaves = self.prepared.measured, self.prepared.leaves
        with BatchNormCalls(own_statistics):
            value = self.prepared.run(chunk, check=False)
        return measured.walk(measured.build(value, leaves), chunk, zeros(leaves))


def prepare(problem: Problem, measured: Measurement) -> PreparedModel:
    """Prepare a model, check it, and decide what its passes run on."""
    team, micro_batch = as_team(problem.team), problem.micro_batch
    with Exclusive(), team.reporting_errors():
        prepared = PreparedModel(problem, measured)
        mode, items = prepared.mode, prepared.items
        if team.several:
            refuse_other_calls(
                team,
                measured.kind,
                mode,
                chosen_parameters(prepared.model, problem.params),
                measured.mass is None,
                problem.seed,
                problem.randomness,
            )
        memory = GraphMemory(
            prepared=prepared, allowed=budget(problem.graph_bytes, prepared.device)
        )
        if problem.randomness == "refuse" or mode is NormMode.EVAL:
            prepared.without_dropout()
        with prepared.tried_out():
            norms = norms_couple(prepared)
        with prepared.sheltered():
            if micro_batch is not None or len(items) > 1 or team.several:
                Separability(prepared=prepared, fits=memory.fits).check()
            several = norms and micro_batch is None and len(items) > 1
            # One graph of what ranks hold apart is nowhere.
            offload = several and mode is NormMode.FULL and not team.several
            offload = offload and StrategyChoice(memory=memory).offloads()
            group = partial(
                group_batches,
                mode=mode,
                norms=norms,
                micro_batch=micro_batch,
                mass=measured.mass,
                seed=problem.seed,
                team=team,
            )
            groups, idle = _parted(
                group(items, joined=lambda: memory.joined(offload=offload))
            )
            # Batches that cannot be joined share no graph, on the host or elsewhere.
            coupled = any(one.coupled for one in groups)
            offload = offload and not coupled
            _refuse_to_part(prepared, coupled)
            sizes = [chunk.samples or 0 for one in groups for chunk in one.chunks]
            fits, largest = True, None
            if sizes and not offload:  # with none, only chunks of other ranks count
                # Sequential chunks take more memory than their own products.
                tight = memory.on_gpu and not coupled
                forecast = memory.tightly if tight else memory.predict
                known = as_bytes("pass_bytes", problem.pass_bytes or 0)
                largest = known or forecast(max(sizes))
            if largest is not None:
                fits = memory.fits_together(sizes, largest)
        retain = fits and micro_batch is None

        def regroup() -> tuple[list[Group], list[Chunk]]:
            """Weigh and join data again that changed in place."""
            again = list(prepared.items)
            together = several and not coupled
            made = group(
                again, joined=lambda: join_batches(again) if together else None
            )
            return _parted(_held(made) if retain else made)

        prepared.plan = PassPlan(
            # Graphs that are kept hold the data anyway.
            groups=_held(groups) if retain else groups,
            idle=idle,
            norms=norms,
            room=memory.room(largest),
            retain=retain,
            offload=offload,
            forecast_bytes=largest,
            partition=_partition(prepared),
            coupled=team.largest(coupled) > 0,
            regroup=None if _streams(prepared) else regroup,
            look=partial(norms_couple, prepared),
        )
        return prepared


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


def _refuse_to_part(prepared: PreparedModel, coupled: bool) -> None:
    """Refuse statistics over several passes if the model differentiates them itself.

    The model's own backward pass would see only one chunk at a time.
    """
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
    gathered = prepared.team.concatenate(torch.tensor(counts, device="cpu")).tolist()
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
    seed = derive(problem.seed, "batch", 0)
    act = _statistics(prepared, micro_batch)

    def begin() -> None:
        prepared.renew()
        reseed(seed)

    begin()
    draws = Draws()
    with torch.no_grad(), BatchNormCalls(act) as calls:
        try:
            with prepared.measure.trying_out() as run:
                value = run(prepared.model, first)
        except RuntimeError:
            if not prepared.measure.differentiates:
                raise
            begin()  # its own backward pass failed without a graph
            with prepared.measure.trying_out() as run:
                value = run(prepared.model, first)
        value = prepared.measured.checked(value) if counts else value
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
        begin()
        with torch.no_grad(), BatchNormCalls(act):
            again = prepared.measure.function()(prepared.model, first)
            check_repeats(value, prepared.measured.checked(again))
    return calls.calls > 0


def _first_that_counts(
    items: Sequence[Batch], micro_batch: int | None, mass: Mass | None
) -> tuple[Batch, bool]:
    """Return the first samples on which the loss is a number, or any, and which."""
    for item in items:
        for part in _parts_of(item, micro_batch):
            samples = samples_in(part)
            if mass is None or samples is None or mass(part, samples) > 0:
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
