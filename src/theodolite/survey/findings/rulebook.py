"""All rules, and the findings of a survey."""

from collections.abc import Sequence

from theodolite.core import unknown_name

from ..records.finding import Finding
from ..records.whole_survey import Survey
from . import norms, signals, skips, units
from .checked import ranked
from .rule import WRITTEN, Rule

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
