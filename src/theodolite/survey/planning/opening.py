"""Open a model for all measures of a survey, and restore it after."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from theodolite.core import NormMode
from theodolite.instruments import (
    Batch,
    Draws,
    Problem,
    apply_norm_mode,
    measuring,
    norm_layers_as_is,
    opened,
    preserve,
    read_batches,
    run_model,
    samples_in,
    slice_batch,
)

from ..measures.batch_use import draws_itself
from ..measures.context import SurveyContext

# Samples used to test whether a network draws random numbers.
_FEW = 4


@contextmanager
def opened_context(problem: Problem, **settings: Any) -> Iterator[SurveyContext]:
    """Open a model with norms in the norm mode, so that it draws no random numbers.

    Under ``as_is`` every module keeps its mode, unless the model draws random numbers:
    then all modules except norms are in eval mode, as under the other modes.

    Other measuring threads wait until it is closed; Ctrl-C waits for a safe point.

    Args:
        problem: The model, restored bit for bit, also after exceptions; its data, its
            loss, the norm mode and the seed.
        settings: Passed on to the context.
    """
    model = getattr(problem.model, "_orig_mod", problem.model)  # of a compiled one
    with torch.inference_mode(False):  # for tensors that a loader makes
        mode, given = problem.mode, read_batches(problem.batches)
    with measuring(), preserve(model):
        torch.backends.mha.set_fastpath_enabled(False)
        modes = {name: module.training for name, module in model.named_modules()}
        drew = switch_off_random_layers(model, given[0], mode)
        if mode not in (NormMode.EVAL, NormMode.AS_IS):
            apply_norm_mode(model, NormMode.BATCH, lambda: None)
        problem = replace(problem, model=model, batches=given, norm_mode=mode)
        if draws_itself(problem, given[0]):  # fixed by the seed, the same in each pass
            problem = replace(problem, randomness="fixed")
        context = SurveyContext(
            problem=problem, modes=modes, random_layers_off=drew, **settings
        )
        if mode is not NormMode.EVAL and _is_of_one(context):
            _without_statistics(context)
        yield context


def _is_of_one(context: SurveyContext) -> bool:
    """Return whether a batch norm gets one value per channel, which torch refuses."""
    kind = nn.modules.batchnorm._BatchNorm
    norms = [m for m in context.model.modules() if isinstance(m, kind) and m.training]
    if context.samples > 1 or not norms or any(m.running_mean is None for m in norms):
        return False
    with opened(context.model, careful=False) as before, torch.no_grad():
        before.lend_buffers()
        try:
            run_model(context.model, context.batch)
        except ValueError as refused:
            return "more than 1 value per channel" in str(refused)
        except Exception:  # measures report other errors
            return False
    return False


def _without_statistics(context: SurveyContext) -> None:
    """Switch to eval mode, since the batch has no statistics, and record that."""
    context.model.eval()
    context.unsupported.append(
        "batch norms: the batch gives one value per channel, which has no variance, so "
        f"all is measured in eval mode instead of {context.norm_mode} mode"
    )
    context.mode_asked = context.norm_mode
    context.problem = replace(context.problem, norm_mode=NormMode.EVAL)


def switch_off_random_layers(model: nn.Module, batch: Batch, mode: NormMode) -> bool:
    """Put modules into eval mode, so that no random numbers are drawn.

    Under ``as_is`` every module keeps its mode, unless a pass draws random numbers:
    then all modules except norm layers go into eval mode. Under other modes all do;
    the norm mode sets norm layers later. Must be called inside ``preserve``.

    Args:
        model: The model.
        batch: Data to run it on; a few samples are used.
        mode: Statistics that normalisation layers use.

    Returns:
        Whether modules were put into eval mode because a pass drew under ``as_is``.
    """
    if mode is not NormMode.AS_IS:
        model.eval()
        return False
    drew = _draws(model, batch)
    if drew:
        kept = norm_layers_as_is(model, mode).get("train", ())
        model.eval()
        for name in kept:
            model.get_submodule(name).train()
    return drew


def _draws(model: nn.Module, batch: Batch) -> bool:
    """Return whether a pass of a few samples draws random numbers."""
    if (samples_in(batch) or 0) > _FEW:
        batch = slice_batch(batch, 0, _FEW)
    with opened(model, careful=False) as before, torch.no_grad():
        before.lend_buffers()
        draws = Draws()
        try:
            run_model(model, batch)
        except Exception:  # what fails here fails in every measure, which says so
            pass
        return draws.happened()
