"""Causes before symptoms: repair each suspect on a copy, and look again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..advice.applying import runs
from ..advice.prescribing import advise
from ..checks.first_aid import ORDER, SYMPTOMS
from ..records.finding import Advice, Finding
from ..records.whole_survey import Survey

ALARMS = ("sick", "warning")
# A look at a repaired copy runs first aid, of about 60 gradients, and one pass.
LOOK = 62.0
_FILES = {each.name: each.look.__module__.rpartition(".")[2] for each in ORDER}
_WIRING = ("wiring", "sequences", "dependence")


@dataclass(frozen=True, kw_only=True)
class Look:
    """What is seen on a repaired copy.

    Attributes:
        alarms: Rules with a warning or worse.
        changed: Number of parameters that the repair changed.
    """

    alarms: frozenset[str]
    changed: int


@dataclass(frozen=True, kw_only=True)
class _Repair:
    finding: Finding
    advice: Advice
    look: Look

    def clears(self, rules: set[str]) -> set[str]:
        """Return which rules are silent after it; none if it does not clear itself."""
        gone = rules - self.look.alarms
        return gone if self.finding.rule in gone and self.look.alarms < rules else set()


def kind_rank(finding: Finding) -> int:
    """Return how early a finding is in the chain of causes.

    Settings, targets, inputs and gradient reach come first, then wiring, then signals,
    then what the trial steps show.
    """
    if finding.rule in SYMPTOMS:
        return 3
    file = _FILES.get(finding.rule, "")
    return 2 if not file else int(file in _WIRING)


def causes_first(
    survey: Survey, look: Callable[[Sequence[Advice]], Look | None], effort: float
) -> tuple[tuple[Finding, ...], tuple[Advice, ...]]:
    """Return findings with causes first and symptoms folded under them, and repairs.

    Single repairs are tried first, from the earliest kind on, then pairs. The smallest
    repair of the earliest kind that clears all other findings is the cause; where none
    does, each repair takes those that it clears.

    Args:
        survey: The survey, with its findings.
        look: Applies advice to a copy and looks at it; None if that fails.
        effort: Gradients that may be spent.

    Returns:
        The findings, and the repairs that cleared others.
    """
    findings = survey.findings
    # The user's own step cannot train a copy, so that no repair clears what it shows.
    alarming = [
        each
        for each in findings
        if each.severity in ALARMS and _FILES.get(each.rule) != "user_step"
    ]
    rules, budget = {each.rule for each in alarming}, int(effort / LOOK)
    if len(rules) < 2:
        return findings, ()
    repairs: list[_Repair] = []
    for finding, advice in _candidates(survey, alarming):
        done = any(r.clears(rules) == rules for r in repairs)
        if not budget or (done and kind_rank(finding) > kind_rank(repairs[-1].finding)):
            break
        budget -= 1
        if (seen := look([advice])) is not None:
            repairs.append(_Repair(finding=finding, advice=advice, look=seen))
    ordered = sorted(
        (r for r in repairs if len(r.clears(rules)) > 1),
        key=lambda r: (-len(r.clears(rules)), kind_rank(r.finding), r.look.changed),
    )
    chosen = [(r, r.clears(rules) - {r.finding.rule}) for r in ordered]
    if not ordered or ordered[0].clears(rules) != rules:
        pairs = combinations([r for r in repairs if r.clears(rules)], 2)
        for one, two in list(pairs)[:budget]:
            seen = look([one.advice, two.advice])
            if seen is not None and not seen.alarms:
                chosen = [
                    (one, rules - {one.finding.rule, two.finding.rule}),
                    (two, set()),
                ]
                break
    return _folded(findings, chosen), tuple(r.advice for r, _ in chosen)


def _candidates(
    survey: Survey, alarming: Sequence[Finding]
) -> Iterator[tuple[Finding, Advice]]:
    """Yield findings with a repair that can be run, the earliest place alone first."""
    for finding in sorted(alarming, key=kind_rank):
        narrow = [replace(finding, where=finding.where[:1])] * (len(finding.where) > 1)
        codes = set[str]()
        for each in (*narrow, finding):
            for advice in advise(survey, [each]):
                if runs(advice) and advice.code not in codes:
                    codes.add(advice.code)
                    yield each, advice


def _folded(
    findings: tuple[Finding, ...], chosen: Sequence[tuple[_Repair, set[str]]]
) -> tuple[Finding, ...]:
    """Return the findings, symptoms under the first repair that clears them."""
    causes: dict[str, Finding] = {}
    folded: set[str] = set()
    for repair, symptoms in chosen:
        cause = repair.finding
        if cause.rule in causes or cause.rule in folded:
            continue
        below = [f for f in findings if f.rule in symptoms - folded - causes.keys()]
        folded |= {each.rule for each in below}
        worst = min((cause, *below), key=lambda f: ALARMS.index(f.severity))
        causes[cause.rule] = replace(
            cause, severity=worst.severity, symptoms=tuple(below)
        )
    rest = [f for f in findings if f.rule not in causes and f.rule not in folded]
    return (*causes.values(), *rest)
