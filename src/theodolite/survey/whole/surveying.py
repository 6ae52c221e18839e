"""A survey from end to end."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

import theodolite
from theodolite.core import (
    ConfigError,
    NormMode,
    Stopwatch,
    TheodoliteError,
)
from theodolite.instruments import (
    Batches,
    Loss,
    preserve_process,
    samples_in,
    tensors_in,
)

from ..advising.prescribing import advise
from ..advising.trials import try_advice
from ..findings.rulebook import check_rules, find
from ..measures.contract import OutOfTimeError, deadline
from ..measures.site import Site
from ..planning.catalogue import chosen
from ..planning.effort import gradients_of, seconds_of
from ..planning.opening import opened_site
from ..planning.running import not_reached, run_measures
from ..planning.telling import Progress
from ..records.block import Block
from ..records.outcomes import Measured
from ..records.whole_survey import Survey
from ..subjects.clothed import Subject
from ..subjects.dressing import dress


@preserve_process()
def survey(
    model: nn.Module | Subject,
    batches: Batches | None = None,
    *,
    loss: Loss | str | None = None,
    effort: str | float = "normal",
    time_limit: str | float | None = None,
    optimizer: Optimizer | None = None,
    norm_mode: NormMode | str = "as_is",
    seed: int = 0,
    measures: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    tries: bool = False,
    progress: bool = True,
) -> Survey:
    """Return a survey of a network: measurements, findings, and advice what to change.

    What is measured, on which samples and how precisely follows from the effort and the
    model alone, so that the numbers are the same on every machine; the survey lists
    measures that need more effort. Ctrl-C and the time limit return what was measured
    so far, and the survey says that it is incomplete.

    Modules are measured in the mode they are in; ``norm_layers`` of the survey names
    the norm layers in train and in eval mode. If it draws random numbers, as dropout
    does in train mode, all modules except norm layers are measured in eval mode, and
    ``settings`` say so.

    Args:
        model: Any module, never changed; or a subject that
            :func:`theodolite.survey.subject_of` made.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them,
            of which the first 16 are read; by default random, and reported as made up.
        loss: A torch loss module, ``loss(model, batch) -> scalar``, or the name of a
            loss; by default one that fits outputs and targets.
        effort: How much to compute: ``"quick"``, ``"normal"``, ``"thorough"``, or a
            number of gradients of the first batch (100, 400 and 2000).
        time_limit: Abort after this time, such as ``"10min"`` or seconds.
        optimizer: The torch optimiser in use, for its rate, decay and state.
        norm_mode: Statistics that normalisation layers use; by default each layer
            keeps its mode. Other modes set all norm layers, and put all other modules
            into eval mode.
        seed: Seed of all random numbers.
        measures: Names of measures; all by default.
        ignore: Names of rules whose findings are left out.
        tries: Whether to try the advice by training; takes about the effort again.
        progress: Whether to show progress in a terminal.

    Returns:
        The survey; print it, or look at ``findings``, ``advice`` and ``rows()``.

    Raises:
        TheodoliteError: The model does not run on the batches.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> result = survey(net, measures=["map", "signal"], progress=False)
        >>> [block.name for block in result.blocks], result.inputs[:7]
        (['0', '2'], 'made up')
    """
    check_rules(ignore)
    wanted, gradients = chosen(measures), gradients_of(effort)
    end = time.perf_counter() + seconds_of(time_limit)
    watch, outcomes = Stopwatch(), list[Measured]()
    subject: Subject | None = None
    seen: dict[str, Any] = {"title": _title(model), "norm_mode": str(norm_mode)}
    try:
        subject = _subject(model, batches, loss, seed)
        seen |= {"title": subject.title, "inputs": subject.inputs}
        line = Progress(wanted=progress)
        with (
            deadline(end),
            opened_site(
                subject.problem(norm_mode=norm_mode, seed=seed),
                effort=gradients,
                optimizer=optimizer,
                labels_known=subject.labels_known,
            ) as site,
            line.open(),
        ):
            outcomes.extend(run_measures(site, wanted, line))
            seen |= _seen(site)
    except (KeyboardInterrupt, OutOfTimeError) as why:  # before a measure
        stopped = "interrupted" if isinstance(why, KeyboardInterrupt) else "out of time"
        outcomes += [not_reached(each, stopped) for each in wanted[len(outcomes) :]]
    result = Survey(
        n_parameters=_size(model),
        measured=tuple(outcomes),
        effort=gradients,
        cost=replace(watch.read(), passes=sum(o.cost.passes for o in outcomes)),
        seed=seed,
        **{"blocks": (), **seen},
    )
    result = _judged(result, ignore)
    if result.incomplete or not tries or not result.advice or subject is None:
        return result
    return _tried(result, subject, optimizer)


def _title(model: nn.Module | Subject) -> str:
    return model.title if isinstance(model, Subject) else type(model).__name__


def _size(model: nn.Module | Subject) -> int:
    net = model.model if isinstance(model, Subject) else model
    return sum(p.numel() for p in net.parameters())


def _seen(site: Site) -> dict[str, Any]:
    """Return the fields of the survey that come from the site, not from measures."""
    return {
        "blocks": _blocks(site),
        "settings": _settings(site),
        "unsupported": tuple(dict.fromkeys(site.unsupported)),
        "norm_mode": str(site.norm_mode),
        "norm_layers": site.norm_layers,
    }


def _subject(model: Any, batches: Any, loss: Any, seed: int) -> Subject:
    if not isinstance(model, Subject):
        return dress(model, batches, loss, seed=seed)
    if batches is not None or loss is not None:
        raise ConfigError(
            "a subject came with batches or a loss, and has its own: leave them out, "
            "or pass its model"
        )
    return model


def _judged(survey: Survey, ignore: Sequence[str] = ()) -> Survey:
    """Return the survey with findings and advice.

    Findings that are only notes do not advise to re-initialise weights.
    """
    findings = tuple(each for each in find(survey) if each.rule not in ignore)
    notes = {each.rule for each in findings if each.severity == "note"}
    advice = tuple(
        each
        for each in advise(survey, findings)
        if each.rule not in notes or each.kind != "initialisation"
    )
    return replace(survey, findings=findings, advice=advice)


@dataclass(frozen=True, kw_only=True)
class _Patient:
    """The model, data and optimiser that trials of advice need."""

    model: nn.Module
    batches: Any
    loss: Loss
    optimizer: Optimizer | None


def _tried(survey: Survey, subject: Subject, optimizer: Optimizer | None) -> Survey:
    """Return the survey with its advice tried; unchanged after Ctrl-C."""
    patient = _Patient(
        model=subject.model,
        batches=subject.batches,
        loss=subject.loss,
        optimizer=optimizer,
    )
    watch = Stopwatch()
    try:
        advice = try_advice(survey.advice, patient, effort=survey.effort)
    except KeyboardInterrupt:
        return survey
    return replace(survey, advice=advice, cost=survey.cost + watch.read())


def _blocks(site: Site) -> tuple[Block, ...]:
    try:
        return site.chart.blocks if "chart" in vars(site) else ()
    except (TheodoliteError, RuntimeError):
        return ()


def _settings(site: Site) -> dict[str, Any]:
    """Return the settings of the measurement: device, precision, loss, batches."""
    optimizer = site.optimizer
    groups = [] if optimizer is None else optimizer.param_groups
    plain = (bool, int, float, str)
    facts = {k: v for k, v in (groups or [{}])[0].items() if isinstance(v, plain)}
    loss = site.loss
    name = type(loss).__name__ if isinstance(loss, nn.Module) else "function"
    return {
        "loss": getattr(loss, "__name__", name),
        "batch_size": samples_in(site.batch),
        "n_batches": len(site.batches),
        "optimizer": type(optimizer).__name__ if optimizer is not None else "",
        "optimizer_settings": facts,
        "dtype": str(site.dtype).removeprefix("torch."),
        "device": _device(site),
        **({"random_layers": "off, by eval mode"} if site.random_layers_off else {}),
        "theodolite": theodolite.__version__,
        "torch": torch.__version__,
    }


def _device(site: Site) -> str:
    """Return the device of the parameters, or of the data if there are none."""
    held = next(iter(site.model.parameters()), None)
    tensors = [held] if held is not None else tensors_in(site.batch)
    return str(tensors[0].device) if tensors else "cpu"
