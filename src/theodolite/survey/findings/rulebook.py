"""All rules, and the findings of a survey."""

import math
from collections.abc import Sequence
from dataclasses import replace

from theodolite.core import Row, unknown_name

from ..records.finding import CHECK, Finding, Severity
from ..records.whole_survey import Survey
from . import norms, signals, skips, units
from .rule import WRITTEN, Rule

_ORDER: dict[Severity, int] = {"sick": 0, "warning": 1, "note": 2, "good": 3}
# Rules in the order in which findings of one severity and place are listed.
RULES: tuple[Rule, ...] = tuple(
    each
    for file in (signals, skips, units, norms)
    for each in WRITTEN
    if each.read.__module__ == file.__name__
)


def check_rules(names: Sequence[str]) -> None:
    """Refuse names that no rule and no check has.

    Raises:
        UnknownNameError: No rule has one of the names.
    """
    from ..checks.first_aid import ORDER  # which imports torch

    known = [each.name for each in (*ORDER, *RULES)]
    for name in names:
        if name not in known:
            raise unknown_name("rule", name, known)


def find(survey: Survey) -> tuple[Finding, ...]:
    """Return the findings of a survey, worst first.

    A rule does not fire if its measure did not run, or if its number is within its
    error of the threshold. Praise is given only if every trained parameter is known to
    get a gradient.

    Args:
        survey: The survey.
    """
    counted = survey.number("n_zero_gradients")
    moved = counted is not None and counted["value"] == 0
    findings = [f for rule in RULES if (f := rule.judge(survey)) is not None]
    findings = [f for f in findings if moved or f.severity != "good"]
    return ranked(survey, findings)


def checked(survey: Survey) -> list[tuple[Finding, bool]]:
    """Return the findings of the checks, and whether each is only a symptom."""
    return [(_finding(row), bool(row["symptom"])) for row in survey.find(CHECK)]


def ranked(survey: Survey, others: list[Finding]) -> tuple[Finding, ...]:
    """Return all findings, worst first; causes before rules, rules before symptoms.

    Among the rules, what is earlier in the forward pass comes first.

    A network that learns in its trial steps is not sick: what a check saw is then at
    most a warning, what a rule infers at most a note. If a check names a cause, nothing
    else is called worse than it.

    Args:
        survey: The survey.
        others: Findings of the rules.
    """
    checks = checked(survey)
    learning = survey.number("learns")
    if learning is not None and learning["value"]:
        checks = [(_at_most(f, "warning"), symptom) for f, symptom in checks]
        others = [_at_most(f, "note") for f in others]
    elif survey.number("learns_later") is not None:  # with the units that are left
        dead = "dead-units"
        others = [_at_most(f, "note") if f.rule == dead else f for f in others]
    causes = [f for f, symptom in checks if not symptom]
    symptoms = [f for f, symptom in checks if symptom]
    if min((_ORDER[f.severity] for f in causes), default=0) == _ORDER["warning"]:
        others = [_at_most(f, "warning") for f in others]
        symptoms = [_at_most(f, "warning") for f in symptoms]
    places = {block.name: place for place, block in enumerate(survey.blocks)}
    last = len(places)
    others = sorted(
        others, key=lambda f: min((places.get(n, last) for n in f.where), default=last)
    )
    everything = [*causes, *others, *symptoms]
    return tuple(sorted(everything, key=lambda finding: _ORDER[finding.severity]))


def _at_most(finding: Finding, severity: Severity) -> Finding:
    if _ORDER[finding.severity] >= _ORDER[severity]:
        return finding
    return replace(finding, severity=severity)


def _finding(row: Row) -> Finding:
    value = row["value"]
    return Finding(
        rule=row["rule"],
        severity=row["severity"],
        title=row["title"],
        says=row["says"],
        quantity=CHECK,
        value=math.inf if value is None else float(value),
        error=0.0,
        threshold=float(row["threshold"]),
        above=bool(row["above"]),
        where=tuple(row["where"].splitlines()),
        source=row["source"],
        confidence=row["confidence"],
    )
