"""Repair copies of a surveyed network: find causes, and try the advice."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from torch.optim import Optimizer

from theodolite.core import FOREIGN, ConfigError, NormMode, TheodoliteError, error_text

from ..advice import calls, losses
from ..advice.applying import Guard, runs
from ..advice.general import general_advice
from ..advice.prescribing import advise, instructions
from ..advice.remedy import REMEDIES
from ..advice.samples import Pool
from ..advice.trials import treat, try_advice, untried, withheld
from ..checks.trial_steps import undone
from ..findings.rulebook import find
from ..measures.context import opened_context
from ..planning.running import chosen, run_measures
from ..records.finding import Advice, Finding
from ..records.whole_survey import Survey
from ..subject.subject import Subject
from .causes import ALARMS, LOOK, Look, causes_first, kind_rank

# Repairs of these act behind what their checks look at, which stays as it is.
_STILL_SEEN = {"inputs-not-finite"} | {
    rule
    for remedy in REMEDIES
    for rule in remedy.rules
    if remedy.write.__module__ in (calls.__name__, losses.__name__)
}
# Measures that a repaired copy is looked at with: first aid and signals.
_LOOKED = ("checks", "map", "signal", "units", "norms")


def alarming(survey: Survey) -> list[Finding]:
    """Return the findings that need action; only these get advice."""
    return [each for each in survey.findings if each.severity in ALARMS]


def tried_out(
    survey: Survey,
    subject: Subject,
    optimizer: Optimizer | None,
    norm_mode: NormMode | str,
) -> Survey:
    """Return the survey with causes first and its advice tried.

    Advice that did harm, and advice for symptoms, is left out. Where none for a cause
    is known to help, changes that suit any training are tried. If nothing is wrong,
    those that help are optional, in ``faster``.
    """
    advice = advise(survey, alarming(survey))
    if not alarming(survey) and _does_well(survey):
        return survey
    try:
        patient = SimpleNamespace(**vars(subject), optimizer=optimizer, passes=0)
        patient.batches = Pool(subject.batches).batches  # read once for all trials
        look = _looking(survey, subject, patient, norm_mode)
        findings, repairs = causes_first(survey, look, survey.effort)
        survey = replace(survey, findings=findings)
        advice = advise(survey, alarming(survey))
        first = [each for each in repairs if each in advice]
        advice = (*first, *(each for each in advice if each not in first))
        tried = try_advice(advice, patient, effort=survey.effort / 2)
        answered = any(_answers(each, survey) for each in tried)
        by_heart = any(each.rule == "targets-unrelated" for each in survey.findings)
        # Learning by heart lowers the loss, and a copy is not trained by a step.
        rest = answered or by_heart or "step" in survey.settings.get("given", ())
        helped = [a for a in tried if a.trial and a.trial.helped == "yes"]
        general = () if rest else general_advice(survey, patient, helped)
        tried = tuple(a for a in tried if a.code not in {g.code for g in general})
    except (TheodoliteError, *FOREIGN) as failed:
        said = f"trials of advice: {error_text(failed)}"
        return replace(survey, advice=advice, unsupported=(*survey.unsupported, said))
    kept = [*general, *(each for each in tried if not withheld(each))]
    refused = {each.rule for each in tried if each.trial and not each.trial.n_seeds}
    kept += instructions(survey, refused - {each.rule for each in kept})
    passes = survey.cost.passes + patient.passes
    every = (*tried, *general)
    passes += sum(t.trial.n_seeds * t.trial.steps for t in every if t.trial)
    survey = replace(survey, cost=replace(survey.cost, passes=passes))
    if not alarming(survey):  # nothing is wrong: it is about speed alone
        return replace(survey, faster=tuple(kept))
    return replace(survey, advice=tuple(kept))


def _does_well(survey: Survey) -> bool:
    """Return whether trial steps lower the loss below that of a guess."""
    after = [r["value"] for r in survey.find("trial_loss", factor=1.0) if r["step"]]
    chance = [r["value"] for r in survey.find("loss_at_chance")]
    high = any(a > c for a, c in zip(after, chance, strict=False) if a and c)
    return bool(survey.find("learns")) and not high


def _answers(advice: Advice, survey: Survey) -> bool:
    """Return whether advice helped, or repairs a cause, which a trial may not show.

    What helped against a symptom by a rule of thumb is compared with other changes.
    """
    if withheld(advice) or not runs(advice):
        return False
    if advice.trial is None:
        return untried(advice)
    found = [f for f in survey.findings if f.rule == advice.rule]
    rank, thumb = kind_rank(found[0]), found[0].confidence == "rule of thumb"
    return rank < 2 or (advice.trial.helped == "yes" and not (rank > 2 and thumb))


def _looking(
    survey: Survey,
    subject: Subject,
    patient: SimpleNamespace,
    norm_mode: NormMode | str,
) -> Callable[[Sequence[Advice]], Look | None]:
    """Return what looks at a repaired copy; it returns None if the repair fails."""
    pool = Pool(patient.batches)
    given = patient.model, patient.optimizer, patient.loss
    with undone(*given):
        guard = Guard(*given, pool.batches[0])

    def look(advice: Sequence[Advice]) -> Look | None:
        with undone(*given):
            try:
                copy = treat(advice, patient, pool, 0, guard)
            except ConfigError:
                return None
            batches: Any = subject.batches
            if copy.batch_size is not None:
                draws = pool.draws(0, copy.batch_size)
                batches = [next(draws) for _ in range(len(pool.batches))]
            repaired = replace(
                subject, model=copy.model, loss=copy.loss, batches=batches
            )
            patient.passes += int(LOOK)
            with opened_context(
                repaired.problem(norm_mode=norm_mode, seed=survey.seed),
                effort=survey.effort,
                optimizer=copy.optimizer,
                labels_known=subject.labels_known,
            ) as context:
                outcomes = tuple(run_measures(context, chosen(_LOOKED)))
        if any(each.status in ("interrupted", "out of time") for each in outcomes):
            raise KeyboardInterrupt  # what was seen so far depends on the clock
        blocks = context.net.block_map.blocks
        found = find(replace(survey, measured=outcomes, blocks=blocks))
        alarms = frozenset(f.rule for f in found if f.severity in ALARMS)
        alarms -= {each.rule for each in advice} & _STILL_SEEN
        changed = sum(p.numel() for p in guard.changed(copy).values())
        return Look(alarms=alarms, changed=changed)

    return look
