"""Open a model to look into it, with what several looks share; restore it after.

Results that several measures read, such as the block map or one gradient pass, are
computed once, on first use.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from theodolite.core import FOREIGN, NormMode, error_text
from theodolite.instruments import (
    Batch,
    Draws,
    Problem,
    apply_norm_mode,
    evaluate,
    measuring,
    norm_layers_as_is,
    opened,
    preserve,
    read_batches,
    reseed,
    run_model,
    samples_in,
    slice_batch,
)

from .activation_hooks import OtherWayError
from .block_map import BlockMap, block_map_of, empty_block_map
from .first_pass import FirstPass, run_first_pass

# Samples on which the parts of a network are recorded, and those used to test whether
# it draws random numbers.
_MAPPED, _FEW = 8, 4


class OpenedModel:
    """A model with data, in modes in which it draws no random numbers.

    Attributes:
        problem: The model, its norms in the norm mode; the batches, the loss, the norm
            mode and the seed.
        modes: Original train or eval mode of each module, by its name.
        random_layers_off: Whether modules drew random numbers and are in eval mode.
        mode_asked: The requested norm mode, if that of the problem differs from it.
        unsupported: Sentences on layers that an instrument cannot handle.
        unmapped: Why no map could be made, if that failed.
        passes: Backward passes made so far.
    """

    def __init__(
        self, problem: Problem, modes: Mapping[str, bool], random_layers_off: bool
    ) -> None:
        self.problem, self.modes = problem, modes
        self.random_layers_off = random_layers_off
        self.mode_asked: NormMode | None = None
        self.unsupported: list[str] = []
        self.unmapped, self.passes = "", 0

    @property
    def model(self) -> nn.Module:
        """The model."""
        return self.problem.model

    @property
    def batch(self) -> Batch:
        """The first batch."""
        given: Any = self.problem.batches
        return given[0]

    @cached_property
    def samples(self) -> int:
        """Samples in the first batch, 1 if it cannot be split into samples."""
        return samples_in(self.batch) or 1

    @cached_property
    def can_be_cut(self) -> bool:
        """Whether model and loss run on the halves of the first batch.

        A graph does not run on a part of its nodes.
        """
        count = samples_in(self.batch)
        if count is None or count < 4:
            return count is not None
        if not math.isfinite(_value(self.problem, self.batch)):  # measures say why
            return True
        half = count // 2
        cuts = (slice_batch(self.batch, *cut) for cut in ((0, half), (half, 2 * half)))
        return all(math.isfinite(_value(self.problem, part)) for part in cuts)

    @cached_property
    def dtype(self) -> torch.dtype:
        """Type of the parameters."""
        real = [p.dtype for p in self.model.parameters() if p.is_floating_point()]
        return real[0] if real else torch.get_default_dtype()

    @cached_property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return norm_layers_as_is(self.model, self.problem.mode)

    def first(self, samples: int) -> Batch:
        """Return at most this many samples of the first batch."""
        if samples >= self.samples or not self.can_be_cut:
            return self.batch
        return slice_batch(self.batch, 0, samples)

    def on(self, samples: int) -> Problem:
        """Return the problem of at most this many samples of the first batch."""
        return replace(self.problem, batches=self.first(samples))

    @cached_property
    def block_map(self) -> BlockMap:
        """The map, from one recorded pass of a few samples; empty if that failed."""
        try:
            return block_map_of(self.model, self.first(_MAPPED))
        except FOREIGN as failed:
            if (called := _as_called(self.problem, self.batch)) is not None:
                with suppress(*FOREIGN):
                    return block_map_of(self.model, called)
            self.unmapped = f"no map could be made, for {error_text(failed)}"
            self.unsupported.append(f"the model: {self.unmapped}")
            return empty_block_map()

    @property
    def first_pass(self) -> FirstPass:
        """One gradient pass of the whole first batch."""
        if isinstance(self._first_pass, Exception):
            raise self._first_pass
        return self._first_pass

    @cached_property
    def _first_pass(self) -> FirstPass | Exception:
        """The pass, or its error, so that not every measure tries it again."""
        problem, self.passes = self.on(self.samples), self.passes + 1
        try:
            return run_first_pass(problem, self.batch, block_map=self.block_map)
        except OtherWayError as failed:
            self.unsupported.append(f"the model: no signals by depth, for {failed}")
            return run_first_pass(problem, self.batch, block_map=empty_block_map())
        except FOREIGN as failed:
            return failed


@contextmanager
def opened_model(problem: Problem) -> Iterator[OpenedModel]:
    """Open a model with norms in the norm mode, so that it draws no random numbers.

    Under ``as_is`` every module keeps its mode, unless the model draws random numbers:
    then all modules except norms are in eval mode, as under the other modes.

    Other measuring threads wait until it is closed; Ctrl-C waits for a safe point.

    Args:
        problem: The model, restored bit for bit, also after exceptions; its data, its
            loss, the norm mode and the seed.
    """
    model = getattr(problem.model, "_orig_mod", problem.model)  # of a compiled one
    with torch.inference_mode(False):  # for tensors that a loader makes
        mode, given = problem.mode, read_batches(problem.batches)
    with measuring(), preserve(model):
        torch.backends.mha.set_fastpath_enabled(False)
        modes = {name: module.training for name, module in model.named_modules()}
        drew = _switch_off_random_layers(problem, model, given[0])
        if mode not in (NormMode.EVAL, NormMode.AS_IS):
            apply_norm_mode(model, NormMode.BATCH, lambda: None)
        problem = replace(problem, model=model, batches=given, norm_mode=mode)
        loss = problem.criterion
        # A variational autoencoder draws in eval mode, and so does a loss with noise.
        if _draws(problem, lambda: evaluate(model, given[0], loss)):
            problem = replace(problem, randomness="fixed")
        held = OpenedModel(problem, modes, drew)
        if mode is not NormMode.EVAL and _is_of_one(held):
            model.eval()
            held.unsupported.append(
                "batch norms: the batch gives one value per channel, which has no "
                f"variance, so all is measured in eval mode instead of {mode} mode"
            )
            held.mode_asked = mode
            held.problem = replace(problem, norm_mode=NormMode.EVAL)
        yield held


def _is_of_one(held: OpenedModel) -> bool:
    """Return whether a batch norm gets one value per channel, which torch refuses."""
    kind = nn.modules.batchnorm._BatchNorm
    norms = [m for m in held.model.modules() if isinstance(m, kind) and m.training]
    if held.samples > 1 or not norms or any(m.running_mean is None for m in norms):
        return False
    with _undone(held.problem), torch.no_grad():
        try:
            run_model(held.model, held.batch)
        except ValueError as refused:
            return "more than 1 value per channel" in str(refused)
        except Exception:  # measures report other errors
            return False
    return False


def _switch_off_random_layers(problem: Problem, model: nn.Module, batch: Batch) -> bool:
    """Put modules into eval mode, so that no random numbers are drawn.

    Under ``as_is`` every module keeps its mode, unless a pass of a few samples draws
    random numbers: then all modules except norm layers go into eval mode. Under other
    modes all do; the norm mode sets norm layers later.

    Returns:
        Whether modules were put into eval mode because a pass drew under ``as_is``.
    """
    if problem.mode is not NormMode.AS_IS:
        model.eval()
        return False
    if (samples_in(batch) or 0) > _FEW:
        batch = slice_batch(batch, 0, _FEW)
    run = torch.no_grad()(run_model)
    drew = _draws(replace(problem, model=model), lambda: run(model, batch))
    if drew:
        kept = norm_layers_as_is(model, problem.mode).get("train", ())
        model.eval()
        for name in kept:
            model.get_submodule(name).train()
    return drew


@contextmanager
def _undone(problem: Problem) -> Iterator[None]:
    """Undo what a pass changes in the model and in the loss."""
    whole = nn.Module()
    whole.model, vars(whole)["loss"] = problem.model, problem.criterion
    with opened(whole, careful=False) as before, torch.enable_grad():
        before.lend_buffers()  # so that graphs of the user stay valid
        yield


def _draws(problem: Problem, run: Callable[[], Any]) -> bool:
    """Return whether a run draws random numbers."""
    with _undone(problem):
        draws = Draws()
        with suppress(Exception):  # which every measure meets as well, and tells
            run()
        return draws.happened()


def _value(problem: Problem, batch: Batch) -> float:
    """Return the loss in eval mode, in which norms compare no samples; NaN if none."""
    with _undone(problem):
        problem.model.eval()
        reseed(problem.seed)
        try:
            return float(evaluate(problem.model, batch, problem.criterion).detach())
        except Exception:  # of foreign code
            return math.nan


def _as_called(problem: Problem, batch: Batch) -> Batch | None:
    """Return what the loss passes to the model, as a batch; None if that has no form.

    A loss of model and batch may pass a part of the batch, or what it made of it.
    """
    calls: list[tuple[Any, Any]] = []

    def note(_: Any, args: Any, kwargs: Any) -> None:
        calls.append((args, kwargs))

    with problem.model.register_forward_pre_hook(note, with_kwargs=True):
        _value(problem, batch)
    if not calls or bool(calls[0][0]) == bool(calls[0][1]):
        return None
    args, kwargs = calls[0]
    inputs = kwargs or (args if len(args) > 1 else args[0])
    return tree_map_only(Tensor, Tensor.detach, inputs), None
