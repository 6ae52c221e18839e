"""Counts of verdicts, for the command line and the report."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .summary import SavedVerdict
from .verdicts.claims import Grade, Kind
from .verdicts.judgement import Outcome


@dataclass(frozen=True, kw_only=True)
class VerdictCounts:
    """Counts of verdicts.

    Attributes:
        claims: Number of the paper's own claims with each outcome.
        hanging: How many of these depend on a margin or choice that we made.
        errata: Number of statements found false or loose.
        confirmed: Of these, how many are refuted as printed and right as corrected.
        beyond: Number of our own statements with each outcome.
        committed: How many verdicts rest on committed runs.
        alone: Of these, how many the run's own rows judge "same", "open" or "other".
        depends: How many of the paper's claims depend on the reading.
        shortened: How many verdicts on these are of runs smaller than the paper's.
        loose: Of the errata, how many are true with other constants or conditions.
        read_otherwise: Errata that are wrong only as we read them; not among these.
    """

    claims: Mapping[Outcome, int]
    hanging: int
    errata: int
    confirmed: int
    beyond: Mapping[Outcome, int]
    committed: int
    alone: Mapping[str, int]
    depends: int = 0
    shortened: int = 0
    loose: int = 0
    read_otherwise: int = 0

    @property
    def total(self) -> int:
        """All claims of the paper."""
        return sum(self.claims.values())

    @property
    def outcomes(self) -> str:
        """Outcomes of the claims, such as "4 hold, 0 fail, 1 undecided"."""
        return _outcomes(self.claims)

    def __str__(self) -> str:
        decided = self.claims[Outcome.HOLDS] + self.claims[Outcome.FAILS]
        parts = [
            f"{_several(self.total, 'claim')}: {decided} decided ({self.outcomes})"
        ]
        beside = {
            "dependent on the reading": self.depends,
            "shortened": self.shortened,
            "by a margin or choice of ours": self.hanging,
        }
        words = [f"{count} {word}" for word, count in beside.items() if count]
        parts += [f"of them {', '.join(words)}"] if words else []
        parts.append(f"{self.confirmed} of {self.errata} errata confirmed")
        parts[-1] += f" ({self.loose} of them loose)" if self.loose else ""
        if self.read_otherwise:
            parts.append(f"{self.read_otherwise} wrong only as we read them")
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
    errata = [one for one in given if one.error_in_print]
    return VerdictCounts(
        claims=_counted(claims, not_run),
        hanging=sum(one.hangs_on_ours for one in claims),
        errata=len(errata),
        confirmed=sum(one.confirmed for one in errata),
        beyond=_counted(one for one in given if one.kind is Kind.BEYOND),
        committed=sum(one.rests_on == "committed" for one in given),
        alone=Counter(_beside(one) for one in given if one.alone is not None),
        depends=sum(one.depends_on_reading for one in claims),
        shortened=sum(bool(one.shortened) for one in claims),
        loose=sum(one.grade == Grade.LOOSE for one in errata),
        read_otherwise=sum(one.grade == Grade.READING for one in given),
    )


def _counted(verdicts: Iterable[SavedVerdict], not_run: int = 0) -> dict[Outcome, int]:
    counts = Counter(one.verdict for one in verdicts)
    counts[Outcome.NOT_RUN] += not_run
    return {outcome: counts[outcome] for outcome in Outcome}


def _beside(verdict: SavedVerdict) -> str:
    """Return whether the run's own rows agree with the committed verdict."""
    if verdict.alone is verdict.verdict:
        return "same"
    return "open" if verdict.alone is Outcome.UNDECIDED else "other"


def _outcomes(counts: Mapping[Outcome, int]) -> str:
    words = ("hold", "fail", "undecided", "not run")
    told = zip(Outcome, words, strict=True)
    always = (Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED)
    return ", ".join(f"{counts[o]} {w}" for o, w in told if counts[o] or o in always)


def _several(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
