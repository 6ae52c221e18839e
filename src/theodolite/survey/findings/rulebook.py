"""All rules, and the findings of a survey."""

from theodolite.core import unknown_name

from ..records.finding import Finding, Severity
from ..records.whole_survey import Survey
from . import learnable, merits, norms, rates, signals, skips, units
from .rule import Rule

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
    """Return the findings of a survey, worst first.

    A rule whose measure was not made, or whose number is within its error of the
    threshold, is silent. Praise is given only where every trained parameter is known to
    get a gradient.

    Args:
        survey: What was measured.
    """
    counted = survey.number("n_zero_gradients")
    moved = counted is not None and counted["value"] == 0
    findings = [f for rule in RULES if (f := rule.judge(survey)) is not None]
    findings = [f for f in findings if moved or f.severity != "good"]
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity]))


def rule_named(name: str) -> Rule:
    """Return a rule by its name.

    Raises:
        UnknownNameError: There is none of this name.
    """
    for rule in RULES:
        if rule.name == name:
            return rule
    raise unknown_name("rule", name, [rule.name for rule in RULES])
