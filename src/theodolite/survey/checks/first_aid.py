"""Run all checks, before anything else is measured."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

from theodolite.instruments import measuring, preserve

from ..measures.contract import Found, Measure, number
from ..measures.site import FOREIGN, Site, error_text
from . import inputs, reach, settings, targets, training, wiring
from .check import CHECKS, WRITTEN, Check, Sign
from .seen import Seen
from .trial_steps import STEPS, all_trained

# Checks in the order in which causes are named: the files in this order.
FILES = (inputs, reach, settings, targets, wiring, training)
ORDER = tuple(
    each for file in FILES for each in CHECKS if each.look.__module__ == file.__name__
)
# What the trial steps show is a symptom where another check names a cause.
SYMPTOMS = frozenset(
    each.name for each in ORDER if each.look.__module__ == training.__name__
) | {"every-gradient-zero", "inputs-without-effect", "no-gradient"}


class FirstAid(Measure):
    """All checks; a row ``check`` for each that fired, and the losses of trial steps.

    ``trial_gain`` is the share of the loss that a trial removed, at each rate as a
    multiple of the one in use; ``learns`` is there if the network learns in its trials.
    """

    name: ClassVar = "checks"

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the trials, then a row for every check that fired."""
        whole = all_trained(site.model, site.optimizer, site.loss)
        tensors = (*whole.parameters(), *whole.buffers())
        # Values come back bit for bit, so graphs of the user that hold them stay valid.
        versions = _unsafe_preserve_version_counter(
            tuple(t for t in tensors if not t.is_inference())
        )
        with measuring(), versions, preserve(whole), torch.enable_grad():
            for name, module in site.model.named_modules():
                module.training = site.modes.get(name, module.training)
            seen = Seen(
                model=site.model,
                batches=[
                    batch for batch, _ in zip(site.batches, range(STEPS), strict=False)
                ],
                loss=site.loss,
                optimizer=site.optimizer,
                seed=site.seed,
                data_known=site.labels_known,
            )
            found = list(_looked(seen, site))
        yield from found


def _looked(seen: Seen, site: Site) -> Iterator[Found]:
    found: list[tuple[Check, Sign]] = []
    runs = _runs(seen, site)
    for each in ORDER:
        if not runs and each.look is not inputs.inputs_not_finite:
            continue
        if each.about != "network" and not seen.data_known:
            continue
        try:
            sign = each.look(seen)
        except FOREIGN as failed:
            site.unsupported.append(f"the check {each.name}: {error_text(failed)}")
            continue
        if sign is not None:
            found.append((each, sign))
    yield from (_row(each, sign) for each, sign in found)
    if runs:
        yield from _trials(seen)
    site.passes += 60


def _runs(seen: Seen, site: Site) -> bool:
    """Return whether the model and its loss can be run; say why if not."""
    try:
        return bool(seen.trace.calls)
    except FOREIGN as failed:
        site.unsupported.append(f"first aid: {error_text(failed)}")
        return False


def _trials(seen: Seen) -> Iterator[Found]:
    for factor, course in seen.courses.items():
        if not course.error:
            yield number("trial_gain", course.gain, 0.0, factor=factor)
    if seen.learns:
        yield number("learns", 1.0, 0.0)


def _row(each: Check, sign: Sign) -> Found:
    WRITTEN.add(sign.repair)
    labels: dict[str, Any] = {
        "rule": each.name,
        "severity": sign.severity or each.severity,
        "title": each.title,
        "says": f"{each.says} {sign.detail}".strip(),
        "threshold": sign.threshold,
        "above": sign.above,
        "where": [name for name in sign.where if name],
        "source": each.source,
        "confidence": each.confidence,
        "symptom": each.name in SYMPTOMS,
        "repair": sign.repair,
        "repaired_by": each.repaired_by,
        "kind": each.kind,
    }
    value = sign.value if math.isfinite(sign.value) else math.inf
    return number("check", value, 0.0, **labels)
