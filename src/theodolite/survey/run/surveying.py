"""A survey from end to end."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

import theodolite
from theodolite.core import ConfigError, NormMode, Stopwatch, TheodoliteError
from theodolite.instruments import (
    Batches,
    Loss,
    preserve_process,
    samples_in,
    tensors_in,
)

from ..advice.prescribing import advise
from ..findings.rulebook import check_rules, find
from ..measures.context import SurveyContext, opened_context
from ..measures.contract import OutOfTimeError, deadline
from ..planning.effort import gradients_of, seconds_of
from ..planning.running import Progress, chosen, not_reached, run_measures
from ..records.outcomes import Measured, MeasureStatus
from ..records.whole_survey import Block, Survey
from ..subject.hugging_face import labels_joined, own_loss
from ..subject.subject import Subject, make_subject
from .repairing import alarming, tried_out


@preserve_process()
def survey(
    model: nn.Module | Subject,
    batches: Batches | None = None,
    *,
    loss: Loss | str | None = None,
    effort: str | float = "normal",
    time_limit: str | float | None = None,
    optimizer: Optimizer | None = None,
    step: Callable[[Any], Any] | None = None,
    norm_mode: NormMode | str = "as_is",
    seed: int = 0,
    measures: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    tries: bool = True,
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
        step: Your own training step, called with one batch: it clears gradients, runs
            the model, goes backward and steps the optimiser, with clipping, schedule,
            accumulation, autocast or scaler as in your loop. It is called some 70 times
            and undone after; what it prints or writes to files is not, and iterators
            that it advances stay there.
        norm_mode: Statistics that normalisation layers use; by default each layer
            keeps its mode. Other modes set all norm layers, and put all other modules
            into eval mode.
        seed: Seed of all random numbers.
        measures: Names of measures; all by default.
        ignore: Names of rules whose findings are left out.
        tries: Whether to repair copies, to tell causes from symptoms, and to try the
            advice by training them; takes about the effort again if there is a warning
            or worse.
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
    net = model.model if isinstance(model, Subject) else model
    title = model.title if isinstance(model, Subject) else type(model).__name__
    seen: dict[str, Any] = {"title": title, "norm_mode": str(norm_mode)}
    # Looks at repaired copies take the effort at most, trials of advice half of it.
    line = Progress(wanted=progress, trials=1.5 * gradients if tries else 0.0)
    try:
        subject = _subject(model, batches, loss, seed)
        seen |= {"title": subject.title, "inputs": subject.inputs}
        given_step = step
        if step is not None and subject.loss is own_loss:  # labels as in their loop
            given_step = lambda batch: step(labels_joined(batch))  # noqa: E731
        with (
            deadline(end),
            opened_context(
                subject.problem(norm_mode=norm_mode, seed=seed),
                effort=gradients,
                optimizer=optimizer,
                step=given_step,
                labels_known=subject.labels_known,
            ) as context,
            line.open(),
        ):
            outcomes.extend(run_measures(context, wanted, line))
            seen |= _seen(context)
            names = {"loss": loss, "optimizer": optimizer, "step": step}
            given = [n for n, v in names.items() if v is not None and v != str(v)]
            seen["settings"]["given"] = given
    except (KeyboardInterrupt, OutOfTimeError) as why:  # before a measure
        missed = [each.name for each in wanted[len(outcomes) :]]
        outcomes += [not_reached(name, _word(why)) for name in missed]
    result = Survey(
        n_parameters=sum(p.numel() for p in net.parameters()),
        measured=tuple(outcomes),
        effort=gradients,
        cost=replace(watch.read(), passes=sum(o.cost.passes for o in outcomes)),
        seed=seed,
        **{"blocks": (), **seen},
    )
    if ignore:
        settings = {**result.settings, "ignored": list(ignore)}
        result = replace(result, settings=settings)
    findings = tuple(each for each in find(result) if each.rule not in ignore)
    result = replace(result, findings=findings)
    checked = any(each.measure == "checks" for each in outcomes)
    if tries and checked and subject is not None and not result.incomplete:
        try:
            with deadline(end):
                tried = tried_out(result, subject, optimizer, norm_mode)
            cost = replace(watch.read(), passes=tried.cost.passes)
            return replace(tried, cost=cost)
        except (KeyboardInterrupt, OutOfTimeError) as why:
            outcomes.append(not_reached("trials", _word(why)))
            result = replace(result, measured=tuple(outcomes))
    return replace(result, advice=advise(result, alarming(result)))


def _word(why: BaseException) -> MeasureStatus:
    return "interrupted" if isinstance(why, KeyboardInterrupt) else "out of time"


def _seen(context: SurveyContext) -> dict[str, Any]:
    """Return the fields of the survey that come from the context, not from measures."""
    blocks: tuple[Block, ...] = ()
    with suppress(TheodoliteError, RuntimeError):
        if "block_map" in vars(context.net):  # else no measure needed it
            blocks = context.net.block_map.blocks
    return {
        "blocks": blocks,
        "settings": _settings(context),
        "unsupported": tuple(dict.fromkeys(context.net.unsupported)),
        "norm_mode": str(context.net.problem.mode),
        "norm_layers": context.net.norm_layers,
    }


def _subject(model: Any, batches: Any, loss: Any, seed: int) -> Subject:
    if not isinstance(model, Subject):
        return make_subject(model, batches, loss, seed=seed)
    if batches is not None or loss is not None:
        raise ConfigError(
            "a subject came with batches or a loss, and has its own: leave them out, "
            "or pass its model"
        )
    return model


def _settings(context: SurveyContext) -> dict[str, Any]:
    """Return the settings of the measurement: device, precision, loss, batches."""
    optimizer = context.optimizer
    groups = [] if optimizer is None else optimizer.param_groups
    plain = (bool, int, float, str)
    facts = {k: v for k, v in (groups or [{}])[0].items() if isinstance(v, plain)}
    held = [*context.net.model.parameters(), *tensors_in(context.net.batch)]
    loss = context.net.problem.criterion
    name = type(loss).__name__ if isinstance(loss, nn.Module) else "function"
    return {
        "loss": getattr(loss, "__name__", name),
        "batch_size": samples_in(context.net.batch),
        "n_batches": len(context.net.problem.batches),
        "optimizer": type(optimizer).__name__ if optimizer is not None else "",
        "optimizer_settings": facts,
        "dtype": str(context.net.dtype).removeprefix("torch."),
        "device": str(held[0].device) if held else "cpu",
        **(
            {"random_layers": "off, by eval mode"}
            if context.net.random_layers_off
            else {}
        ),
        "theodolite": theodolite.__version__,
        "torch": torch.__version__,
    }
