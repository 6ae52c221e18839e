"""All rules, and the findings of a survey."""

from collections.abc import Sequence

from theodolite.core import unknown_name

from ..records.finding import Finding
from ..records.whole_survey import Survey
from . import norms, signals, skips, units
from .checked import ranked
from .evidence import Evidence, Figure, body, decades
from .rule import Rule

# Decades between the largest and the smallest signal: our choice.
STEADY = 1.0


def _steady(survey: Survey) -> Evidence | None:
    """Return the larger of the forward and the backward spread."""
    spreads: list[Figure] = []
    for quantity in ("forward_rms", "backward_rms"):
        sizes = sorted((f for _, f in body(survey, quantity)), key=lambda f: f.value)
        if len(sizes) < 3:
            return None
        spreads.append(decades(sizes[-1], sizes[0]))
    worst = max(spreads, key=lambda f: f.value)
    return Evidence(figure=worst, threshold=STEADY, above=False)


RULES: tuple[Rule, ...] = (
    *signals.RULES,
    *skips.RULES,
    *units.RULES,
    *norms.RULES,
    Rule(
        name="signal-steady",
        severity="good",
        title="Signal and gradient keep their size through the depth",
        says=(
            "From the first block to the last neither changes by more than a factor "
            "of ten, so that one learning rate suits all layers."
        ),
        quantity="decades between the largest and the smallest",
        measures=("map", "signal"),
        source="the factor of ten is ours",
        study="li2016demystifying/signal_sizes",
        confidence="rule of thumb",
        read=_steady,
    ),
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
