"""A survey from end to end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

import theodolite
from theodolite.core import (
    ConfigError,
    MeasurementError,
    NormMode,
    Stopwatch,
    TheodoliteError,
)
from theodolite.instruments import Batches, Loss, samples_in
from theodolite.survey.measures.catalogue import chosen
from theodolite.survey.measures.site import Site
from theodolite.survey.planning.budget import seconds_of
from theodolite.survey.planning.opening import opened_site
from theodolite.survey.planning.running import run_measures
from theodolite.survey.planning.telling import Progress
from theodolite.survey.records.block import Block
from theodolite.survey.records.outcomes import Measured
from theodolite.survey.records.whole_survey import Survey
from theodolite.survey.subjects.clothed import Subject
from theodolite.survey.subjects.dressing import dress


def survey(
    model: nn.Module | Subject,
    batches: Batches | None = None,
    *,
    loss: Loss | str | None = None,
    budget: str | float = "1min",
    optimiser: Optimizer | None = None,
    norm_mode: NormMode | str = "batch",
    seed: int = 0,
    measures: Sequence[str] | None = None,
    progress: bool = True,
) -> Survey:
    """Survey a network: what its skips and norms do, and what that means.

    Measures run in order of what they tell per second until the budget is spent; what
    does not fit is said, with what it would take. Ctrl-C gives the survey of what is
    done. Dropout and whatever else eval mode switches off is off.

    Args:
        model: Any module; left as found, bit for bit. Or what :func:`dress` and
            :func:`subject_of` return, which has its batches and loss.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them;
            made up by default, and said to be.
        loss: A torch loss module, ``loss(model, batch) -> scalar``, or a name such as
            ``"mse"``; by default what outputs and targets suggest.
        budget: Time to spend, such as ``"1min"``, ``"90s"``, or seconds.
        optimiser: The torch optimiser in use, for its rate, decay and state.
        norm_mode: Statistics that normalisation layers use.
        seed: Seed of whatever is random.
        measures: Names of measures; all by default.
        progress: Whether to show progress, at a terminal.

    Returns:
        The survey; print it, or look at ``findings``, ``advice`` and ``rows()``.

    Raises:
        TheodoliteError: The model does not run on the batches.
    """
    _check(model, optimiser)
    wanted, seconds = chosen(measures), seconds_of(budget)
    watch = Stopwatch()
    subject = _dressed(model, batches, loss, seed)
    outcomes: list[Measured] = []
    with (
        opened_site(
            subject.model,
            subject.batches,
            loss=subject.loss,
            labels_known=subject.labels_known,
            norm_mode=norm_mode,
            seed=seed,
            budget_s=seconds,
            optimiser=optimiser,
        ) as site,
        Progress(wanted=progress).open() as line,
    ):
        for outcome in run_measures(site, wanted, line):
            outcomes.append(outcome)
        blocks, settings = _blocks(site), _settings(site)
    return Survey(
        title=subject.title,
        n_parameters=sum(p.numel() for p in subject.model.parameters()),
        blocks=blocks,
        measured=tuple(outcomes),
        unsupported=tuple(dict.fromkeys(site.unsupported)),
        inputs=subject.inputs,
        budget_s=seconds,
        cost=replace(watch.read(), passes=sum(o.cost.passes for o in outcomes)),
        seed=seed,
        norm_mode=str(site.norm_mode),
        settings=settings,
    )


def _dressed(model: Any, batches: Any, loss: Any, seed: int) -> Subject:
    """Return a subject: as it came, or made of a live module."""
    if not isinstance(model, Subject):
        return dress(model, batches, loss, seed=seed)
    if batches is not None or loss is not None:
        given = "batches" if batches is not None else "a loss"
        raise ConfigError(
            f"{given} came with a subject, which has its own: pass its model, or "
            "nothing else"
        )
    return model


def _check(model: Any, optimiser: Any) -> None:
    if not isinstance(model, nn.Module | Subject):
        raise MeasurementError(
            f"a {type(model).__name__} came, wanted is a torch.nn.Module: pass the "
            "network itself"
        )
    if optimiser is not None and not isinstance(optimiser, Optimizer):
        raise ConfigError(
            f"optimiser is a {type(optimiser).__name__}, wanted one of torch: pass "
            "for instance torch.optim.SGD(model.parameters(), lr=0.1), or None"
        )


def _blocks(site: Site) -> tuple[Block, ...]:
    try:
        return site.chart.blocks if "chart" in vars(site) else ()
    except (TheodoliteError, RuntimeError):
        return ()


def _settings(site: Site) -> dict[str, Any]:
    """Return under what circumstances all was measured."""
    optimiser = site.optimiser
    groups = [] if optimiser is None else optimiser.param_groups
    plain = (bool, int, float, str)
    facts = {k: v for k, v in (groups or [{}])[0].items() if isinstance(v, plain)}
    loss = site.loss
    name = type(loss).__name__ if isinstance(loss, nn.Module) else "function"
    return {
        "loss": getattr(loss, "__name__", name),
        "batch_size": samples_in(site.batch),
        "n_batches": len(site.batches),
        "optimiser": type(optimiser).__name__ if optimiser is not None else "",
        "optimiser_settings": facts,
        "dtype": str(site.dtype).removeprefix("torch."),
        "device": str(next(iter(site.model.parameters())).device),
        "theodolite": theodolite.__version__,
        "torch": torch.__version__,
    }
