"""The rounds: every network of the bay surveyed, every rule held against it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.known_failures.cases import Case, Pair, Standard
from tests.known_failures.pairs import PAIRS
from tests.known_failures.seeds import redrawn
from tests.known_failures.sound_networks import STANDARDS
from theodolite.survey.checks.first_aid import SYMPTOMS
from theodolite.survey.findings.rulebook import find
from theodolite.survey.records.whole_survey import Survey
from theodolite.survey.run.surveying import survey

# What severities ask somebody to act; notes only tell.
ALARMS = ("sick", "warning")
# Measures that rules read.
READ = ("checks", "map", "signal", "units", "norms")


@dataclass(frozen=True, kw_only=True, eq=False)
class Visit:
    """What the rules said of one network, and what they should have said.

    Attributes:
        name: Of the network.
        state: ``"sick"``, ``"healthy"`` (a twin) or ``"standard"``.
        survey: The survey.
        expected: Rules that must fire.
        allowed: Rules that are true of it as well.
    """

    name: str
    state: str
    survey: Survey
    expected: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    @cached_property
    def fired(self) -> dict[str, str]:
        """Severity of each rule that fired, praise left out."""
        findings = find(self.survey)
        return {f.rule: f.severity for f in findings if f.severity != "good"}

    @property
    def misses(self) -> tuple[str, ...]:
        """Rules that should have fired and did not."""
        return tuple(rule for rule in self.expected if rule not in self.fired)

    @property
    def others(self) -> tuple[str, ...]:
        """Rules that fired and are not what this network is in the bay for."""
        return tuple(rule for rule in self.fired if rule not in self.expected)

    @property
    def false_alarms(self) -> tuple[str, ...]:
        """Rules that ask for action where nothing is known to be wrong."""
        known = (*self.expected, *self.allowed)
        if self.state == "sick":
            known = (*known, *SYMPTOMS)
        return tuple(r for r, s in self.fired.items() if s in ALARMS and r not in known)


def examined(patient: Case, *, measures: Sequence[str] | None = None) -> Survey:
    """Survey one network of the bay, by default with all measures that rules read."""
    return survey(
        patient.model,
        patient.batches,
        loss=patient.loss,
        optimizer=patient.optimizer,
        measures=measures or READ,
        tries=False,  # since findings are judged one by one
        progress=False,
    )


def visit_pair(
    pair: Pair, *, measures: Sequence[str] | None = None
) -> tuple[Visit, Visit]:
    """Visit a sick network and its healthy twin."""
    sick = Visit(
        name=pair.name,
        state="sick",
        survey=examined(pair.sick(), measures=measures),
        expected=pair.expected,
        allowed=pair.also,
    )
    healthy = Visit(
        name=pair.name,
        state="healthy",
        survey=examined(pair.healthy(), measures=measures),
        allowed=pair.notes,
    )
    return sick, healthy


def visit_standard(
    standard: Standard, *, measures: Sequence[str] | None = None
) -> Visit:
    """Visit a network of a common kind."""
    return Visit(
        name=standard.name,
        state="standard",
        survey=examined(standard.make(), measures=measures),
        allowed=standard.notes,
    )


def rounds(*, measures: Sequence[str] | None = None) -> Iterator[Visit]:
    """Visit every network of the bay."""
    for pair in PAIRS:
        yield from visit_pair(pair, measures=measures)
    for standard in STANDARDS:
        yield visit_standard(standard, measures=measures)


def again(draw: int) -> Iterator[Visit]:
    """Visit all networks drawn again.

    Args:
        draw: Which draw of weights and samples.
    """
    with redrawn(draw):
        for pair in PAIRS:
            yield from visit_pair(pair)
        for standard in STANDARDS:
            yield visit_standard(standard)
