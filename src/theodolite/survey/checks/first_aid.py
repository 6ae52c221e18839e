"""Run all checks, before anything else is measured."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

from theodolite.core import FOREIGN, error_text
from theodolite.instruments import measuring, preserve

from ..measures.context import SurveyContext
from ..measures.contract import Found, number
from . import (
    cuts,
    dependence,
    inputs,
    labels,
    losses,
    norms,
    reach,
    relation,
    sequences,
    settings,
    starts,
    targets,
    training,
    user_step,
    wiring,
)
from .check import CHECKS, WRITTEN, Check, Sign
from .seen import LONG, STUCK, Seen
from .trial_steps import STEPS, loss_of, undone

# Checks in the order in which causes are named: the files in this order.
FILES = (
    inputs, reach, cuts, starts, settings, norms, targets, labels, losses, wiring,
    sequences, dependence, user_step, relation, training,
)  # fmt: skip
ORDER = tuple(
    each for file in FILES for each in CHECKS if each.look.__module__ == file.__name__
)
# What the trial steps show is a symptom where another check names a cause.
SYMPTOMS = frozenset(
    each.name for each in ORDER if each.look.__module__ == training.__name__
) | {
    "every-gradient-zero",
    "inputs-without-effect",
    "no-gradient",
    "step-learns-less",
    "loss-starts-high",
}


# Gradients of a batch that they take: our choice.
GRADIENTS = 60
# Checks that need no pass of the model.
_WITHOUT_PASS = (inputs.inputs_not_finite, training.does_not_run)


def check_rows(context: SurveyContext, gradients: float) -> Iterator[Found]:
    """All checks; a row ``check`` for each that fired, and the losses of trial steps.

    ``trial_gain`` is the share of the loss that a trial removed, at each rate as a
    multiple of the one in use; ``trial_loss`` is the loss on its first batches before
    and after it; ``learns`` is there if the network learns in its trials, and
    ``learns_later`` if it does so in a hundred steps only.
    ``loss_at_chance`` is the loss of equal chances for all classes, or of the best
    answer that ignores the inputs.
    """
    problem = context.net.problem
    given: Any = {
        "model": context.net.model,
        "loss": problem.criterion,
        "optimizer": context.optimizer,
        "step": context.step,
    }
    with measuring(), undone(**given), torch.enable_grad():
        for name, module in context.net.model.named_modules():
            module.training = context.net.modes.get(name, module.training)
        seen = Seen(
            **given,
            batches=list(islice(problem.batches, STEPS)),
            seed=problem.seed,
            long=int(min(LONG, max(2 * STEPS, context.effort / 4))),
            data_known=context.labels_known,
        )
        found = list(_looked(seen, context))
    yield from found


def _looked(seen: Seen, context: SurveyContext) -> Iterator[Found]:
    found: list[tuple[Check, Sign]] = []
    runs = _runs(seen, context)
    for each in ORDER:
        if not runs and each.look not in _WITHOUT_PASS:
            continue
        if each.about != "network" and not seen.data_known:
            continue
        try:
            sign = each.look(seen)
        except FOREIGN as failed:
            context.net.unsupported.append(
                f"the check {each.name}: {error_text(failed)}"
            )
            continue
        if sign is not None:
            found.append((each, sign))
    yield from (_row(each, sign) for each, sign in found)
    if runs:
        yield from _trials(seen)
    context.net.passes += GRADIENTS


def _runs(seen: Seen, context: SurveyContext) -> bool:
    """Return whether the model and its loss can be run; say why if not."""
    try:
        return bool(seen.trace.calls)
    except FOREIGN as failed:
        context.net.unsupported.append(f"first aid: {error_text(failed)}")
        seen.fails = _own_error(seen)
        return False


def _own_error(seen: Seen) -> str:
    """Return the error of the model or its loss without any of our listeners."""
    try:
        with preserve(seen.model), torch.enable_grad():
            loss_of(seen.model, seen.batch, seen.loss)
    except FOREIGN as failed:
        return error_text(failed)
    return ""


def _trials(seen: Seen) -> Iterator[Found]:
    for factor, course in seen.courses.items():
        if not course.error:
            yield number("trial_gain", course.gain, 0.0, factor=factor)
            for step, loss in ((0, course.before), (STEPS, course.after)):
                of = {"factor": factor, "rate": course.rate, "step": step}
                yield number("trial_loss", loss, 0.0, **of)
    if seen.learns:
        yield number("learns", 1.0, 0.0)
    elif seen.below_chance(seen.longer) > STUCK:
        yield number("learns_later", 1.0, 0.0)
    if (chance := seen.guess) is not None:
        classes = seen.classes
        chance = chance if classes is None else math.log(classes[0].shape[1])
        yield number("loss_at_chance", chance, 0.0, n_samples=seen.samples)


def _row(each: Check, sign: Sign) -> Found:
    WRITTEN.add(sign.repair)
    places = [sign.where] if isinstance(sign.where, str) else sign.where
    labels: dict[str, Any] = {
        "rule": each.name,
        "severity": sign.severity or each.severity,
        "title": each.title,
        "says": f"{each.says} {sign.detail}".strip(),
        "threshold": sign.threshold,
        "above": sign.above,
        "where": "\n".join(filter(None, places)),
        "source": each.source,
        "confidence": each.confidence,
        "symptom": each.name in SYMPTOMS,
        "repair": sign.repair,
        "repaired_by": each.repaired_by,
        "kind": each.kind,
    }
    value = sign.value if math.isfinite(sign.value) else math.inf
    return number("check", float(value), 0.0, **labels)
