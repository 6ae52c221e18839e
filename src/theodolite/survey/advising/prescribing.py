"""Advice for findings."""

from collections.abc import Iterable

from theodolite.core import Row

from ..checks.check import WRITTEN
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
    foreign: set[str] = set()
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
        for row in survey.find("check", rule=finding.rule):
            answered = any(a.rule == finding.rule for a in by_rule.values())
            if row["repair"] and not answered:
                by_rule.setdefault(row["repair"], _repair(row))
                foreign |= {row["repair"]} - WRITTEN
    _WRITTEN.update(by_rule.keys() - foreign)
    return tuple(by_rule.values())


def _repair(row: Row) -> Advice:
    """Return the repair that a check wrote."""
    return Advice(
        rule=row["rule"], title=row["repaired_by"], code=row["repair"], kind=row["kind"]
    )


def written_here(code: str) -> bool:
    """Return whether :func:`advise` wrote a piece of code in this process."""
    return code in _WRITTEN
