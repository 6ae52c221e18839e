"""Advice for findings."""

from collections.abc import Iterable

from ..records.finding import Advice, Finding
from ..records.whole_survey import Survey
from . import settings, surgeries, weights
from .remedy import Remedy

REMEDIES: tuple[Remedy, ...] = (
    *settings.REMEDIES,
    *surgeries.REMEDIES,
    *weights.REMEDIES,
)
# Code written by this process; no other code may be run.
_WRITTEN: set[str] = set()


def advise(survey: Survey, findings: Iterable[Finding]) -> tuple[Advice, ...]:
    """Return advice for findings, in their order, without repeating code.

    Args:
        survey: The survey.
        findings: Its findings, from :func:`theodolite.survey.find`.
    """
    by_rule: dict[str, Advice] = {}
    for finding in findings:
        for remedy in REMEDIES:
            if finding.rule not in remedy.rules:
                continue
            code = remedy.write(survey, finding)
            if code is not None:
                if finding.on_samples:
                    code = f"# Measured{finding.on_samples}.\n{code}"
                advice = Advice(
                    rule=finding.rule, title=remedy.title, code=code, kind=remedy.kind
                )
                by_rule.setdefault(code, advice)
    _WRITTEN.update(by_rule)
    return tuple(by_rule.values())


def written_here(code: str) -> bool:
    """Return whether :func:`advise` wrote a piece of code in this process."""
    return code in _WRITTEN
