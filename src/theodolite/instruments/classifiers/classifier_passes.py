"""Run a classifier over its data in a given norm mode, and restore it afterwards."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from theodolite.core import Exclusive, MeasurementError, NormMode

from ..differentiate.batch_norm_twice import NormCall, plain_statistics
from ..differentiate.twice import BatchNormCalls
from ..model.objective import Batch, checked_outputs, outputs_of
from ..model.process_state import Draws, counted, settle_dropout
from ..model.reachable_state import ReachableState, norm_layers
from ..model.restoring import SavedState, opened
from ..norms.full_statistics import FullStatistics, Moments, moments_of
from ..norms.normalisation import norm_layers_as_is, set_norm_layers
from ..passes.batches import Batches
from ..passes.grouping import read_batches
from ..passes.problem import Model, Problem, given_in, problem_of


class ClassifierPasses:
    """Runs a classifier on batches, only while it is open.

    Args:
        problem: The classifier and its data.
        model: The classifier, unwrapped.
        items: Its data.
        state: The state to start each pass from.
        statistics: Moments for batch norms, if they are not the data's own.

    Attributes:
        problem: As given.
        model: The classifier.
        items: Its data.
        mode: Statistics that normalisation layers use.
        moments: Moments of the inputs of batch norms that used batch statistics in the
            last pass, in order.
    """

    def __init__(
        self,
        problem: Problem,
        model: nn.Module,
        items: Sequence[Batch],
        state: SavedState,
        statistics: list[Moments] | None,
    ) -> None:
        self.problem, self.model, self.items = problem, model, items
        self.mode = mode = problem.mode
        self._pick, self._state = problem.outputs or outputs_of, state
        self.moments: list[Moments] = []
        self._known = statistics
        draws = Draws()
        self.outputs(items[0])
        if draws.happened():
            raise MeasurementError(
                "the model draws random numbers, so its outputs are random: switch "
                "that off"
            )
        joins = mode in (NormMode.FULL, NormMode.FROZEN) and statistics is None
        if self.moments and joins:
            several = len(items) > 1
            self._known = (
                FullStatistics(items, self._raw).known if several else self.moments
            )

    @property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return norm_layers_as_is(self.model, self.mode)

    @property
    def statistics(self) -> list[Moments] | None:
        """Moments of all the data, if batch norms use those."""
        return self._known

    def outputs(
        self, batch: Batch, watch: AbstractContextManager[Any] | None = None
    ) -> Tensor:
        """Return the outputs for a batch; they may hold NaN or infinity.

        Args:
            batch: The batch.
            watch: A torch mode to run it in, which sees norms before they are replaced.
        """
        self.moments = []
        with BatchNormCalls(self._act), watch or nullcontext():
            return self._raw(batch)

    @contextmanager
    def own_statistics(self) -> Iterator[None]:
        """Under ``full``, make passes use the statistics of their own batch."""
        known = self._known
        if self.mode is NormMode.FULL:
            self._known = None
        try:
            yield
        finally:
            self._known = known

    def _raw(self, batch: Batch) -> Tensor:
        self._state.lend_buffers()
        set_norm_layers(norm_layers(self.model), self.mode)
        outputs = checked_outputs(self._pick(self.model, batch))
        counted(unit="batches")
        if outputs.ndim == 0 or not outputs.is_floating_point():
            raise MeasurementError(
                f"the outputs have shape {tuple(outputs.shape)} and type "
                f"{outputs.dtype}, wanted are real ones, samples along the first axis: "
                "pick them with outputs=…"
            )
        return outputs

    def _act(self, call: NormCall) -> Tensor:
        if self.mode is NormMode.EVAL:
            raise MeasurementError(
                "a batch norm takes batch statistics also in eval mode: use norm mode "
                "'batch' or 'full'"
            )
        if self._known is None:
            self.moments.append(moments_of(call.x))
            return plain_statistics(call)
        known = self._known[call.place]
        self.moments.append(known)
        return call.by(known.mean, known.variance)


def classifier_problem(
    model: Model | Problem, batches: Batches, **settings: Any
) -> Problem:
    """Return the problem of a classifier; a given one keeps what is not set."""
    problem = problem_of(model, batches, given_in(settings))
    if problem.batches is None:
        raise MeasurementError("no data came: pass batches of inputs and labels")
    if problem.team is not None and problem.team.several:
        raise MeasurementError(
            "the problem has a team, and classifiers are measured in one process: pass "
            "dataclasses.replace(problem, team=None, batches=…) with all the data"
        )
    return problem


@contextmanager
def classifier_passes(
    problem: Problem,
    *,
    callables: Sequence[Callable[..., Any] | None] = (),
    statistics: list[Moments] | None = None,
) -> Iterator[ClassifierPasses]:
    """Open a classifier for passes without derivatives; restore it on exit.

    Args:
        problem: The classifier, its data, its norm mode and what runs it.
        callables: Other callables that run while it is open.
        statistics: Moments for batch norms, if they are not the data's own.
    """
    model = getattr(problem.model, "_orig_mod", problem.model)
    items = read_batches(problem.batches, max_batches=problem.max_batches)
    given = [problem.outputs or outputs_of, *callables]
    roots = [model, *(call for call in given if call is not None)]
    with (
        Exclusive(),
        opened(model, careful=True, reach=ReachableState(roots)) as state,
        torch.no_grad(),
    ):
        settle_dropout(model, problem.mode)
        yield ClassifierPasses(problem, model, items, state, statistics)


@contextmanager
def finer_passes(
    passes: ClassifierPasses,
) -> Iterator[tuple[ClassifierPasses, Batch]]:
    """Open a float64 copy of the model on its first batch, with the same statistics."""
    twin = copy.deepcopy(passes.model).double()
    batch, known = tree_map(_double, passes.items[0]), passes.statistics
    if known is not None:
        known = [Moments(m.count, m.mean.double(), m.variance.double()) for m in known]
    same = replace(passes.problem, model=twin, batches=[batch], norm_mode=passes.mode)
    with classifier_passes(same, statistics=known) as finer:
        yield finer, batch


def _double(leaf: Any) -> Any:
    real = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return leaf.double() if real else leaf
