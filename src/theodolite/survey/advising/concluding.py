"""A survey's numbers, read: findings, advice, and trials where they are asked for."""

from dataclasses import replace

from theodolite.survey.advising.prescribing import advise
from theodolite.survey.advising.trials import Treatable, try_advice
from theodolite.survey.findings.rulebook import find
from theodolite.survey.records.whole_survey import Survey


def conclude(
    survey: Survey, subject: Treatable | None = None, *, budget_s: float = 60.0
) -> Survey:
    """Return a survey with what its numbers mean and what to do about it.

    Args:
        survey: What was measured.
        subject: What the advice is tried on; without it, it is only given.
        budget_s: Seconds for the trials.
    """
    findings = find(survey)
    advice = advise(survey, findings)
    if subject is not None and advice:
        advice = try_advice(advice, subject, budget_s=budget_s)
    return replace(survey, findings=findings, advice=advice)
