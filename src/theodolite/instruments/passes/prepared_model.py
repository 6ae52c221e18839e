"""A model prepared for passes: opened repeatedly, checked for changes, graphs kept."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointError

from theodolite.core import Exclusive, MeasurementError, NormMode, safe_point

from ..differentiate.batch_norm_twice import batch_statistics
from ..differentiate.twice import BatchNormCalls
from ..distributed.processes import as_team
from ..model.objective import Batch, check_devices, tensors_in
from ..model.process_state import counted, refuse_dropout, reseed, settle_dropout
from ..model.reachable_state import (
    ChangeDetector,
    ReachableState,
    chosen_parameters,
    norm_layers,
    unwrapped,
)
from ..model.restoring import SavedState, opened
from ..norms.coupling import Coupling, MemoryBudget
from ..norms.full_statistics import Moments, frozen_statistics
from ..norms.normalisation import freeze_norm_layers, set_norm_layers
from ..norms.tensor_store import offloaded
from .grouping import Chunk, Group, read_batches
from .problem import Measure, Measurement, Problem
from .ranks import refuse_other_weights
from .streams import StreamedBatches


@contextmanager
def _no_recomputing() -> Iterator[None]:
    # torch recomputes outside of the modes that replace operators.
    try:
        yield
    except CheckpointError as error:
        raise MeasurementError(
            "activation checkpointing recomputes batch norm or weight norm otherwise "
            "than at first: switch it off, and save memory with micro_batch=…"
        ) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class PassPlan:
    """What the passes of a product run on, and what is kept between products.

    Attributes:
        groups: Chunks of the data that share batch statistics.
        idle: Chunks that count only in the statistics, if norms are frozen at those of
            all the data.
        norms: Whether norms use batch statistics, which couple samples.
        room: Memory for tensors that chunks carry from norm to norm.
        retain: Whether the graphs of all chunks fit in memory together.
        offload: Whether graphs are kept on the host.
        forecast_bytes: Memory that the largest pass takes at its peak, None where that
            is unknown.
        partition: Samples of each batch as given, those of all ranks.
        coupled: Whether batch statistics run over several passes, on any rank.
        regroup: Makes groups and idle chunks again when data or weights of samples
            have changed.
        look: Checks again, inside ``sheltered``, whether norms couple samples.
    """

    groups: Sequence[Group] = ()
    idle: Sequence[Chunk] = ()
    norms: bool = False
    room: MemoryBudget = field(default_factory=lambda: MemoryBudget(device=0))
    retain: bool = False
    offload: bool = False
    forecast_bytes: int | None = None
    partition: tuple[int | None, ...] = ()
    coupled: bool = False
    regroup: Callable[[], tuple[list[Group], list[Chunk]]] | None = None
    look: Callable[[], bool] | None = None


class PreparedModel:
    """A model that runs in sessions; each session restores it.

    Args:
        problem: The model, its data and the settings of passes. A compiled model is
            unwrapped, and one of ``DistributedDataParallel``.
        measured: The quantity to differentiate.

    Attributes:
        model: The model itself.
        team: Processes that hold the other batches.
        mode: Statistics that norms use.
        measure: Runs the model on a batch.
        items: The batches as given.
        leaves: The parameters to differentiate by.
        layout: Their names and shapes.
        dtype: Their type.
        device: Their device.
        plan: What passes run on; ``set_up.prepare`` makes it.
        graphs: Graphs that products share, until the model changes.
        changes: How often sessions found the model or its data changed.
        is_open: Whether a session is open, which found the model unchanged.
    """

    def __init__(self, problem: Problem, measured: Measurement) -> None:
        self.problem, self.measured = problem, measured
        self.team, self.model = as_team(problem.team), unwrapped(problem.model)
        self.mode, self.measure = problem.mode, Measure(measured.measure)
        self._names = list(chosen_parameters(self.model, problem.params))
        self._resolve()
        self.items = read_batches(problem.batches, max_batches=problem.max_batches)
        check_devices(self.items, self.device)
        self.plan = PassPlan()
        self.graphs: dict[Chunk, Any] = {}
        self.changes = 0
        self.is_open = self._careful = self._quiet = self._begun = False
        self._saved: SavedState | None = None
        self._frozen: dict[nn.Module, Moments] = {}
        self._detector: ChangeDetector | None = None
        self._modes = self._modes_now()

    @property
    def joins(self) -> bool:
        """Whether statistics are those of more than one batch."""
        several = len(self.items) > 1 or self.team.several
        return several and self.mode in (NormMode.FULL, NormMode.FROZEN)

    @property
    def keeps_graphs(self) -> bool:
        """Whether the graphs of all groups are kept once they are built."""
        coupled = any(group.coupled for group in self.plan.groups)
        return self.plan.retain and not coupled

    def building(self) -> AbstractContextManager[None]:
        """Keep the tensors of a graph that is built inside on the host, if planned."""
        staying = list(self.model.parameters())
        return offloaded(staying) if self.plan.offload else nullcontext()

    def keep(self, group: Group, chunk: Chunk, graph: Any) -> None:
        """Keep a chunk's graph for later products, where all graphs fit.

        Where batch statistics run over several chunks, graphs are never kept: those
        groups are cut since their graphs do not fit.
        """
        if self.plan.retain and not group.coupled:
            self.graphs[chunk] = graph

    def without_dropout(self) -> None:
        """Switch dropout off under ``EVAL``, as at inference; refuse it elsewhere."""
        self._quiet = self.mode is NormMode.EVAL
        if not self._quiet:
            refuse_dropout(self.model)

    def in_float64(self, batch: Batch) -> "PreparedModel":
        """Return a copy of the model in float64, for passes over a batch as it is."""
        copied = PreparedModel(
            replace(
                self.problem,
                model=copy.deepcopy(self.model).double(),
                batches=[batch],
                norm_mode=self.mode,
                params=self._names,
                max_batches=None,
                team=None,
            ),
            replace(self.measured, measure=self.measure, callables=self.measured.code),
        )
        copied._quiet = self._quiet
        return copied

    @contextmanager
    def tried_out(self) -> Iterator[None]:
        """Open the model for its first run; check whether it can be trusted.

        One that writes to tensors that are not its to write is copied as a whole for
        every session from then on.
        """
        reach = self._reach()
        saved = SavedState(self.model, careful=True, reach=reach)
        try:
            grads = [p.grad for p in self.model.parameters() if p.grad is not None]
            before = ChangeDetector(reach, grads)
            with self.sheltered():
                yield
            self._careful = not before.matches(self._reach())
        finally:
            saved.restore()

    @contextmanager
    def sheltered(self) -> Iterator[None]:
        """Open the model before groups are settled; restore it on exit."""
        careful, leaves, reach = self._careful, self.leaves, self._reach()
        with opened(self.model, careful=careful, leaves=leaves, reach=reach) as saved:
            before, self._saved = self._saved, saved
            try:
                yield
            finally:
                self._saved = before

    @contextmanager
    def session(self, *, products: int = 1) -> Iterator[None]:
        """Open the model for passes, unless it is open; restore it on exit.

        Args:
            products: How many are counted at the end; with 0 it is for all sessions
                within.
        """
        with ExitStack() as stack:
            # Also while one looks whether the model has changed.
            stack.enter_context(Exclusive())
            if not self.is_open:
                stack.enter_context(self._newly_opened())
            yield
        if products:
            counted(products)

    @contextmanager
    def _newly_opened(self) -> Iterator[None]:
        with self.team.reporting_errors():
            reach = self._reach()
            changed = self._follow(reach)
            careful, leaves = self._careful, self.leaves
            with (
                opened(self.model, careful=careful, leaves=leaves, reach=reach) as now,
                BatchNormCalls(batch_statistics),
                _no_recomputing(),
            ):
                before, self._saved = self._saved, now
                try:
                    self.renew()
                    if changed:
                        self._measure_again()
                    self.is_open = True
                    yield
                finally:
                    self.is_open, self._saved = False, before

    def _reach(self) -> ReachableState:
        return ReachableState([self.model, *self.measured.code])

    def unchanged(self) -> bool:
        """Return whether model and data are as they were in the last session."""
        with Exclusive():
            known = self._detector
            return known is not None and known.matches(self._reach())

    def _follow(self, reach: ReachableState) -> bool:
        """Detect that the model or the data changed, and drop cached results.

        Under a team in this or another process; all must have the same model.
        """
        changed = self._detector is None or not self._detector.matches(reach)
        if self.team.several and self.team.largest(changed):
            refuse_other_weights(self.model, self.mode, self.team)
            if not changed:
                self._forget()
                return True
        if not changed:
            return False
        before = self.layout, self.dtype, self.device
        self._resolve()
        if (self.layout, self.dtype, self.device) != before:
            raise MeasurementError(
                "the model was moved, converted or given parameters of other shapes "
                "since the operator was made: make a new one"
            )
        streamed = isinstance(self.items, StreamedBatches)
        items = () if streamed else self.items
        data = [tensor for item in items for tensor in tensors_in(item)]
        spared = [] if self.mode is NormMode.EVAL else norm_layers(self.model)
        if self.mode is NormMode.AS_IS:
            spared = [norm for norm in spared if norm.training]
        self._detector = ChangeDetector(reach, data, spared)
        self._forget()
        return True

    def _forget(self) -> None:
        self._frozen = {}
        self.changes += 1
        self.graphs.clear()

    def run(self, chunk: Chunk, *, check: bool = True) -> Tensor:
        """Run a chunk from the state the model was found in; only in a session.

        A chunk of weight 0 gives 0, even where it was 0/0.
        """
        safe_point()
        batch = chunk.batch
        self.renew()
        reseed(chunk.seed)
        value = self.measure.function()(self.model, batch)
        if self.measured.scalar and chunk.weight == 0:
            return torch.zeros_like(value)
        return self.measured.checked(value) if check else value

    def depends(self, chunk: Chunk) -> bool:
        """Return whether the measured value depends on any parameter; in a session.

        If so, the chosen ones may have no influence: their derivatives are then zero.
        """
        every = [p for p in self.model.parameters() if p.is_floating_point()]
        flags = [parameter.requires_grad for parameter in every]
        try:
            for parameter in every:
                parameter.requires_grad_(True)
            return self.run(chunk).requires_grad
        finally:
            for parameter, flag in zip(every, flags, strict=True):
                parameter.requires_grad_(flag)

    def renew(self) -> None:
        """Reset the model to the state each pass starts from; only in a session."""
        # No part of the pass, so modes that watch the pass must not see it.
        with torch._C.DisableTorchFunction():
            if self._saved is not None:
                self._saved.lend_buffers()
            if self._quiet:
                settle_dropout(self.model, self.mode)
            if norms := norm_layers(self.model):
                set_norm_layers(norms, self.mode)
                freeze_norm_layers(self._frozen)

    def _measure_again(self) -> None:
        """Measure statistics; if that fails, the next session has to."""
        try:
            self._follow_modes()
            if self._begun and (regroup := self.plan.regroup) is not None:
                # Also free what was joined with them.
                self.plan = replace(self.plan, groups=(), idle=())
                groups, idle = regroup()
                self.plan = replace(self.plan, groups=groups, idle=idle)
            self._begun = True
            self._measure_statistics()
        except BaseException:
            self._detector = None
            raise

    def _modes_now(self) -> list[bool]:
        return [module.training for module in self.model.modules()]

    def _follow_modes(self) -> None:
        """Check again which modules have changed mode, if each keeps its own."""
        if self.mode is not NormMode.AS_IS or self._modes_now() == self._modes:
            return
        norms = self.plan.norms if self.plan.look is None else self.plan.look()
        if norms != self.plan.norms:
            raise MeasurementError(
                "modules were put into train or eval mode since the operator was made, "
                "so that batch norms couple samples that they did not, or no longer "
                "do: make a new operator"
            )
        self._modes = self._modes_now()

    def _measure_statistics(self) -> None:
        """Measure the norm statistics of all the data, at these parameters."""
        groups = self.plan.groups
        chunks = [chunk for group in groups for chunk in group.chunks]
        chunks += self.plan.idle
        coupling = Coupling(
            run=lambda chunk: self.run(chunk, check=False),
            opened=lambda chunk: ((held := chunk.held()), tensors_in(held.data)),
            leaves=self.leaves,
            room=self.plan.room,
            check=self.measured.checked,
        )
        if self.mode is NormMode.FROZEN and self.plan.norms:
            norms, find = norm_layers(self.model), coupling.moments
            self._frozen = frozen_statistics(norms, chunks, self.run, self.team, find)
        for group in groups:
            if group.coupled:
                group.statistics = coupling.of(group.chunks, group.team)

    def _resolve(self) -> None:
        """Find the parameters by name, since a module may be given new ones."""
        chosen = chosen_parameters(self.model, self._names)
        leaf = next(iter(chosen.values()))
        if len({(p.dtype, p.device) for p in chosen.values()}) > 1:
            raise MeasurementError(
                "the parameters are of several dtypes or on several devices, wanted "
                "is one: choose some with params=…, or convert the model"
            )
        if not leaf.is_floating_point():
            raise MeasurementError(
                f"the parameters are {leaf.dtype}, wanted are real floats: convert the "
                "model, for instance with double()"
            )
        self.leaves: list[Tensor] = list(chosen.values())
        self.layout = tuple((name, tuple(p.shape)) for name, p in chosen.items())
        self.dtype, self.device = leaf.dtype, leaf.device
