"""The evidence for a claim: a run's rows, and those of a committed long run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..rows import to_json_values
from .claims import Claim, Ruling
from .judgement import Outcome
from .selecting import PredictedAndMeasured


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
