"""Open a model for all measures of a survey, and restore it after."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from theodolite.core import Exclusive, NormMode
from theodolite.instruments import (
    Problem,
    apply_norm_mode,
    opened,
    preserve,
    read_batches,
    run_model,
)

from ..measures.random_layers import switch_off_random_layers
from ..measures.site import Site


@contextmanager
def opened_site(problem: Problem, **settings: Any) -> Iterator[Site]:
    """Open a model with norms in the norm mode, so that it draws no random numbers.

    Under ``as_is`` every module keeps its mode, unless the model draws random numbers:
    then all modules except norms are in eval mode, as under the other modes.

    Other measuring threads wait until it is closed; Ctrl-C waits for a safe point.

    Args:
        problem: The model, restored bit for bit, also after exceptions; its data, its
            loss, the norm mode and the seed.
        settings: Passed on to :class:`~theodolite.survey.measures.site.Site`.
    """
    model = getattr(problem.model, "_orig_mod", problem.model)  # of a compiled one
    mode, given = problem.mode, read_batches(problem.batches)
    with Exclusive(), preserve(model):
        torch.backends.mha.set_fastpath_enabled(False)
        modes = {name: module.training for name, module in model.named_modules()}
        drew = switch_off_random_layers(model, given[0], mode)
        if mode not in (NormMode.EVAL, NormMode.AS_IS):
            apply_norm_mode(model, NormMode.BATCH, lambda: None)
        site = Site(
            problem=replace(problem, model=model, batches=given, norm_mode=mode),
            modes=modes,
            random_layers_off=drew,
            **settings,
        )
        if mode is not NormMode.EVAL and _is_of_one(site):
            _without_statistics(site)
        yield site


def _is_of_one(site: Site) -> bool:
    """Return whether a batch norm gets one value per channel, which torch refuses."""
    kind = nn.modules.batchnorm._BatchNorm
    norms = [m for m in site.model.modules() if isinstance(m, kind) and m.training]
    if site.samples > 1 or not norms or any(m.running_mean is None for m in norms):
        return False
    with opened(site.model, careful=False) as before, torch.no_grad():
        before.lend_buffers()
        try:
            run_model(site.model, site.batch)
        except ValueError as refused:
            return "more than 1 value per channel" in str(refused)
        except Exception:  # measures report other errors
            return False
    return False


def _without_statistics(site: Site) -> None:
    """Switch to eval mode, since the batch has no statistics, and record that."""
    site.model.eval()
    site.unsupported.append(
        "batch norms: the batch gives one value per channel, which has no variance, so "
        f"all is measured in eval mode instead of {site.norm_mode} mode"
    )
    site.mode_asked = site.norm_mode
    site.problem = replace(site.problem, norm_mode=NormMode.EVAL)
