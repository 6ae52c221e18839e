"""All rules, and what they find in a survey."""

from theodolite.core import unknown_name
from theodolite.survey.findings import (
    learnable,
    merits,
    norms,
    rates,
    signals,
    skips,
    units,
)
from theodolite.survey.findings.rule import Rule
from theodolite.survey.records.finding import Finding, Severity
from theodolite.survey.records.whole_survey import Survey

RULES: tuple[Rule, ...] = (
    *signals.RULES,
    *skips.RULES,
    *units.RULES,
    *norms.RULES,
    *rates.RULES,
    *learnable.RULES,
    *merits.RULES,
)
_ORDER: dict[Severity, int] = {"sick": 0, "warning": 1, "note": 2, "good": 3}


def find(survey: Survey) -> tuple[Finding, ...]:
    """Return what the numbers of a survey mean, worst first.

    A rule whose measure was not made, or whose number is within its error of the
    threshold, is silent.

    Args:
        survey: What was measured.
    """
    found = [f for rule in RULES if (f := rule.judge(survey)) is not None]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def rule_named(name: str) -> Rule:
    """Return a rule by its name.

    Raises:
        UnknownNameError: There is none of this name.
    """
    for rule in RULES:
        if rule.name == name:
            return rule
    raise unknown_name("rule", name, [rule.name for rule in RULES])
