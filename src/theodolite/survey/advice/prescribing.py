"""Advice for findings."""

from collections.abc import Collection, Iterable

from theodolite.core import Row

from ..checks.check import WRITTEN
from ..records.finding import Advice, Finding
from ..records.whole_survey import Survey
from . import (  # noqa: F401
    calls,
    losses,
    repairs,
    settings,
    surgeries,
    weights,
)
from .remedy import REMEDIES

# Code written by this process; no other code may be run.
_WRITTEN: set[str] = set()


def advise(survey: Survey, findings: Iterable[Finding]) -> tuple[Advice, ...]:
    """Return advice for findings, in their order, without repeating code.

    Args:
        survey: The survey.
        findings: Its findings, from :func:`theodolite.survey.find`.
    """
    by_code: dict[str, Advice] = {}
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
                by_code.setdefault(code, advice)
        for row in survey.find("check", rule=finding.rule):
            answered = any(a.rule == finding.rule for a in by_code.values())
            if not answered and (advice := _repair(row)).title:
                by_code.setdefault(advice.code, advice)
                foreign |= {row["repair"]} - WRITTEN
    _WRITTEN.update(by_code.keys() - foreign)
    return tuple(by_code.values())


def _repair(row: Row, *, run: bool = True) -> Advice:
    """Return the repair that a check wrote, or its title as an instruction."""
    title = " ".join(row["repaired_by"].split())
    place = ", ".join(row["where"].split())
    code = f"# {title}{f', here: {place}' if place else ''}\n"
    code = row["repair"] if run and row["repair"] else code
    return Advice(rule=row["rule"], title=title, code=code, kind=row["kind"])


def instructions(survey: Survey, rules: Collection[str]) -> list[Advice]:
    """Return what checks say in words, for rules whose code cannot be applied."""
    rows = [row for row in survey.find("check") if row["rule"] in rules]
    return [each for row in rows if (each := _repair(row, run=False)).title]


def written_here(code: str) -> bool:
    """Return whether :func:`advise` wrote a piece of code in this process."""
    return code in _WRITTEN
