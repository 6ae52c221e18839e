"""Counts of verdicts, for the command line and the report."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .summary import SavedVerdict
from .verdicts.claims import Kind
from .verdicts.judgement import Outcome


@dataclass(frozen=True, kw_only=True)
class VerdictCounts:
    """Counts of verdicts.

    Attributes:
        claims: Number of the paper's own claims with each outcome.
        hanging: How many of these depend on a margin or choice that we made.
        errata: Number of statements found wrong or incomplete.
        confirmed: Of these, how many are refuted as printed and right as corrected.
        beyond: Number of our own statements with each outcome.
        committed: How many verdicts rest on committed runs.
        alone: Of these, how many the run's own rows judge "same", "open" or "other".
        not_run: Claims of the paper without a verdict.
    """

    claims: Mapping[Outcome, int]
    hanging: int
    errata: int
    confirmed: int
    beyond: Mapping[Outcome, int]
    committed: int
    alone: Mapping[str, int]
    not_run: int = 0

    @property
    def total(self) -> int:
        """All claims of the paper."""
        return sum(self.claims.values()) + self.not_run

    @property
    def outcomes(self) -> str:
        """Outcomes of the claims, such as "4 hold, 0 fail, 1 undecided"."""
        return _outcomes(self.claims)

    def __str__(self) -> str:
        parts = [f"{_several(self.total, 'claim')}: {self.outcomes}"]
        parts[0] += f", {self.not_run} not run" if self.not_run else ""
        if self.hanging:
            parts[0] += f" ({self.hanging} of them by a margin or choice of ours)"
        parts.append(f"{self.confirmed} of {self.errata} errata confirmed")
        if beyond := sum(self.beyond.values()):
            parts.append(f"{beyond} beyond the paper: {_outcomes(self.beyond)}")
        if self.committed:
            verb = "rests" if self.committed == 1 else "rest"
            count = _several(self.committed, "verdict")
            parts.append(f"{count} {verb} on committed runs")
        return "; ".join(parts)


def count_verdicts(
    verdicts: Iterable[SavedVerdict], *, not_run: int = 0
) -> VerdictCounts:
    """Count verdicts.

    Args:
        verdicts: Verdicts of any number of studies.
        not_run: Claims of the paper that have no verdict.
    """
    given = list(verdicts)
    claims = [one for one in given if one.kind is Kind.CLAIM]
    errata = [one for one in given if one.kind is Kind.ERRATUM]
    return VerdictCounts(
        claims=_counted(claims),
        hanging=sum(one.hangs_on_ours for one in claims),
        errata=len(errata),
        confirmed=sum(one.confirmed for one in errata),
        beyond=_counted(one for one in given if one.kind is Kind.BEYOND),
        committed=sum(one.rests_on == "committed" for one in given),
        alone=Counter(_beside(one) for one in given if one.alone is not None),
        not_run=not_run,
    )


def _counted(verdicts: Iterable[SavedVerdict]) -> dict[Outcome, int]:
    counts = Counter(one.verdict for one in verdicts)
    return {outcome: counts[outcome] for outcome in Outcome}


def _beside(verdict: SavedVerdict) -> str:
    """Return whether the run's own rows agree with the committed verdict."""
    if verdict.alone is verdict.verdict:
        return "same"
    return "open" if verdict.alone is Outcome.UNDECIDED else "other"


def _outcomes(counts: Mapping[Outcome, int]) -> str:
    words = {"HOLDS": "hold", "FAILS": "fail", "UNDECIDED": "undecided"}
    return ", ".join(f"{counts[o]} {words[o]}" for o in Outcome)


def _several(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
