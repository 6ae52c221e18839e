"""A statement of a paper, the test that judges it, and the verdict on the evidence.

The evidence is a run's rows, and those of a committed long run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from ..errors import ConfigError
from ..rows import to_json_values
from .alive import Alive
from .judgement import Judgement, Outcome, Test, if_exact, undecided
from .selecting import PredictedAndMeasured, calling


class Kind(StrEnum):
    """Whose statement it is.

    ``CLAIM``: the paper's, judged as printed. ``ERRATUM``: the paper's, found wrong or
    incomplete, judged as printed and as corrected. ``BEYOND``: ours, not counted among
    the paper's claims.
    """

    CLAIM = "claim"
    ERRATUM = "erratum"
    BEYOND = "beyond"


class Grade(StrEnum):
    """How wrong a printed statement is; a reading is no error of the paper.

    ``FALSE``: a counterexample is shown. ``LOOSE``: true with other constants or
    conditions. ``READING``: wrong only as we read it.
    """

    FALSE = "false"
    LOOSE = "loose"
    READING = "reading"


@dataclass(frozen=True)
class Number:
    """A value with its error; ``error`` is None where it is exact by definition."""

    value: float | None
    error: float | None = None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.value:.6g}"
        return f"{self.value:.6g} ± {self.error:.2g}"


Asides = Callable[[PredictedAndMeasured], Mapping[str, Number | float | int]]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Something that the paper leaves open and we chose, such as what "deep" means."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """The judgement of one set of rows on a claim.

    Attributes:
        judged: The judgement on the statement; for an erratum, as printed.
        corrected: For an erratum, the judgement on the corrected statement.
        asides: Further numbers that teach and decide nothing.
        died: How many runs died, where a rule says which count.
    """

    judged: Judgement
    corrected: Judgement | None = None
    asides: Mapping[str, Number | float | int] = field(default_factory=dict)
    died: str = ""

    @property
    def outcome(self) -> Outcome:
        """What the numbers say of the statement."""
        return self.judged.outcome

    @property
    def confirmed(self) -> bool:
        """Whether an erratum stands: refuted as printed, right as corrected."""
        right = self.corrected is None or self.corrected.outcome is Outcome.HOLDS
        return self.judged.outcome is Outcome.FAILS and right

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        numbers = {}
        for name, given in self.asides.items():
            number = given if isinstance(given, Number) else Number(given)
            numbers[name] = {"value": number.value, "error": number.error}
        corrected = None if self.corrected is None else self.corrected.to_dict()
        return to_json_values(
            {
                "outcome": str(self.outcome),
                "because": self.judged.because,
                "judged": self.judged.to_dict(),
                "corrected": corrected,
                "corrected_because": self.corrected.because if self.corrected else "",
                "confirmed": self.confirmed,
                "needed": self.judged.needed,
                "hangs_on_ours": self.judged.hangs_on_ours,
                "numbers": numbers,
                "died": self.died,
            }
        )


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper with the test that judges it.

    Attributes:
        name: Short name, unique within the study.
        place: Theorem, equation, figure panel or table cell.
        statement: The claim in our words; ``$…$`` is mathematics.
        test: Judges the statement on predicted and measured rows; for an erratum, the
            printed statement.
        rival: What else the numbers could have shown, and exclude.
        kind: Whose statement it is.
        printed: For an erratum, what the paper prints.
        corrected: For an erratum, the correct statement.
        corrected_test: For an erratum, judges the correct statement.
        choices: What the paper leaves open and we chose, besides the regions' ends.
        asides: Further numbers that teach and decide nothing.
        own_rows_only: Whether committed runs are not used to judge it.
        departures: Where its rows depart from the paper and cannot be varied, such as
            the dataset; printed beside the verdict.
        grade: For an erratum, how wrong the printed statement is.
        theory: The same test on predicted rows, where there is a closed form for the
            claim's own network: a claim that this refutes is refused.
        alive: Which runs count; the study's rule by default.
        all_runs: Whether dead runs count too, as for claims about stability.
        sizes: Settings whose size matters to it, where a run is smaller than the
            paper's; all by default.
        words: What quantities are called in reasons; the study's words by default.
    """

    name: str
    place: str
    statement: str
    test: Test
    rival: str
    kind: Kind = Kind.CLAIM
    printed: str = ""
    corrected: str = ""
    corrected_test: Test | None = None
    choices: tuple[Choice, ...] = ()
    asides: Asides | None = None
    own_rows_only: bool = False
    departures: tuple[str, ...] = ()
    grade: Grade = Grade.FALSE
    theory: Test | None = None
    alive: Alive | None = None
    all_runs: bool = False
    sizes: tuple[str, ...] | None = None
    words: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        erratum = self.kind is Kind.ERRATUM
        if erratum != bool(self.printed and self.corrected):
            raise ConfigError(
                f"claim {self.name!r} is of kind {self.kind}: an erratum, and nothing "
                "else, says what is printed and what is right"
            )
        if self.corrected_test is not None and not erratum:
            raise ConfigError(
                f"claim {self.name!r} has a corrected test and is no erratum: set "
                "kind=Kind.ERRATUM"
            )

    def rule(self, both: PredictedAndMeasured) -> Ruling:
        """Judge the claim on one set of rows.

        Raises:
            ConfigError: Theory's own numbers lie outside of the claim's region.
        """
        with calling(self.words):
            return self._rule(both)

    def _rule(self, both: PredictedAndMeasured) -> Ruling:
        died, everyone = "", both
        if self.alive is not None:
            both, died = self.alive.split(both, keep=self.all_runs)
        self._refuse_impossible(both)
        judged, corrected = self.test(both), self.corrected_test
        if judged.missing and died and not self.test(everyone).missing:
            judged = undecided("no run that it reads is alive")
        return Ruling(
            judged=judged,
            corrected=None if corrected is None else corrected(both),
            asides={} if self.asides is None else self.asides(both),
            died=died,
        )

    def _refuse_impossible(self, both: PredictedAndMeasured) -> None:
        """Refuse a claim that could never hold: theory itself misses its region."""
        foretold = None if self.theory is None else if_exact(self.theory(both))
        if foretold is None or foretold.outcome is not Outcome.FAILS:
            return
        leaf = foretold.deciding
        number = "" if leaf.quantity is None else f" {leaf.quantity.value:.4g}"
        raise ConfigError(
            f"claim {self.name!r} could never hold: theory itself gives {leaf.name}"
            f"{number}, outside of {leaf.region}; choose a region that contains what "
            "theory gives, or make the claim an erratum"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the tests."""
        return {
            "claim": self.name,
            "place": self.place,
            "kind": str(self.kind),
            "statement": self.statement,
            "rival": self.rival,
            "printed": self.printed,
            "corrected": self.corrected,
            "choices": [to_json_values(choice) for choice in self.choices],
            "departures": list(self.departures),
            "grade": str(self.grade) if self.kind is Kind.ERRATUM else "",
        }


# A statement of the paper that is wrong, and one of ours.
erratum = partial(Claim, kind=Kind.ERRATUM)
beyond = partial(Claim, kind=Kind.BEYOND)


@dataclass(frozen=True)
class Evidence:
    """The rows of a run, and the rows of a long run that the package contains.

    Attributes:
        own: Rows that the run itself predicted and measured.
        committed: Rows of a long run at paper scale, where there is one.
        on: Data of the committed run, where it differs from the run's own.
        smaller: What is smaller than in the paper, in words, by the setting's name:
            of the run's own rows, and of the committed ones.
    """

    own: PredictedAndMeasured
    committed: PredictedAndMeasured | None = None
    on: str = ""
    smaller: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})

    @property
    def first(self) -> PredictedAndMeasured:
        """The committed rows where there are any, else the run's own."""
        return self.own if self.committed is None else self.committed


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict of the evidence on a claim.

    Attributes:
        claim: The claim.
        own: Ruling on the run's own rows; None where it measured none.
        committed: Ruling on the committed rows; None where there are none.
        on: Data of the committed run, where it differs from the run's own.
        shortened: What is smaller than in the paper in the run that counts, in words.
    """

    claim: Claim
    own: Ruling | None
    committed: Ruling | None = None
    on: str = ""
    shortened: str = ""

    @property
    def ruling(self) -> Ruling:
        """The ruling that counts: the committed one where there is one."""
        ruling = self.committed or self.own
        assert ruling is not None  # one of the two is always made
        return ruling

    @property
    def outcome(self) -> Outcome:
        """What the numbers say."""
        return self.ruling.outcome

    @property
    def rests_on(self) -> str:
        """Whose rows decide: "committed" or "own"."""
        return "committed" if self.committed is not None else "own"

    @property
    def hangs_on_ours(self) -> bool:
        """Whether a margin, range or threshold that is not the paper's decides."""
        return bool(self.claim.choices) or self.ruling.judged.hangs_on_ours

    def to_dict(self) -> dict[str, Any]:
        """Return what a summary keeps of the claim and its verdict."""
        own = None if self.own is None else self.own.to_dict()
        committed = None if self.committed is None else self.committed.to_dict()
        return to_json_values(
            {
                **self.claim.to_dict(),
                "verdict": str(self.outcome),
                "rests_on": self.rests_on,
                "on": self.on,
                "hangs_on_ours": self.hangs_on_ours,
                "shortened": self.shortened,
                "own": own,
                "committed": committed,
            }
        )


def decide(claim: Claim, evidence: Evidence) -> Verdict:
    """Judge a claim on all the evidence there is."""
    committed = None if claim.own_rows_only else evidence.committed
    own = claim.rule(evidence.own) if evidence.own or committed is None else None
    verdict = Verdict(
        claim=claim,
        own=own,
        committed=None if committed is None else claim.rule(committed),
        on=evidence.on if committed is not None else "",
    )
    smaller = evidence.smaller[committed is not None]
    words = [
        words
        for setting, words in smaller.items()
        if claim.sizes is None or setting in claim.sizes
    ]
    # What no chance has a part in is the same for fewer networks.
    counts = verdict.outcome is not Outcome.NOT_RUN and (
        verdict.ruling.judged.random or claim.sizes is not None
    )
    return replace(verdict, shortened=", ".join(words) if counts else "")
