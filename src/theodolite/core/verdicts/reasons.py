"""Verdicts in words: the reason of one, and the counts of many.

A reason says which number decides, what its rival says, and what Holm's step does.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..summary import SavedVerdict
from .claims import Grade, Kind
from .judgement import ALPHA, Judgement, Outcome, depends_on_reading

_WHERE = {
    Outcome.HOLDS: "lies in the region",
    Outcome.FAILS: "lies outside of the region",
    Outcome.UNDECIDED: "lies across an end of the region",
}


def reason(judgement: Judgement) -> str:
    """Return the number that decides, its interval and region, and what else counts."""
    told = _told(judgement)
    if depends_on_reading(judgement):
        return told
    return f"{told}{_counted(judgement)}{_wanting(judgement)}"


def _told(judgement: Judgement, *, corrected: bool = False) -> str:
    """Return what decides; ``corrected`` if a correction was told already."""
    if judgement.decider is None:
        return _leaf(judgement)
    if judgement.rule == "readings":
        return _readings(judgement)
    if judgement.rule == "against":
        return _against(judgement)
    step = "" if corrected else _holm(judgement)
    piece = judgement.pieces[judgement.decider]
    return f"{_told(piece, corrected=corrected or bool(step))}{step}"


def _leaf(leaf: Judgement) -> str:
    """Return where a leaf's interval lies."""
    if leaf.quantity is None or leaf.region is None:
        return leaf.note
    name, number = leaf.name or leaf.quantity.name, leaf.quantity
    low, high = leaf.interval
    if not math.isfinite(low) and not math.isfinite(high):
        return f"{name} is open: {number.note or 'it could not be computed'}"
    span = f" [{_short(low)}, {_short(high)}]" if low != high else ""
    about = f", {number.note}" if number.note.startswith("of these") else ""
    value = f"{name} {_short(number.value)}{span}{about}"
    return f"{value} {_WHERE[leaf.outcome]} {leaf.region}"


def _against(judgement: Judgement) -> str:
    """Return the claim's own number, then the rival's apart from it."""
    first, rival = judgement.pieces
    told = _told(first)
    if first.outcome is not Outcome.HOLDS:
        return told
    word = "excluded" if rival.outcome is Outcome.HOLDS else "not excluded"
    return f"{told}; the rival is {word}: {_told(rival)}"


def _readings(judgement: Judgement) -> str:
    """Return what the paper's own reading says, and which reading turns it."""
    first, *others = judgement.pieces
    if not depends_on_reading(judgement):
        unread = [one.name for one in others if one.missing and not first.missing]
        agree = f"{len(judgement.pieces)} readings agree"
        rest = f"not run under {', '.join(unread)}" if unread else agree
        return f"{_told(first)}; {rest}"
    turned = judgement.pieces[judgement.decider or 0]
    said = [f'{o.outcome} under "{o.name}" ({_told(o)})' for o in (first, turned)]
    counts = Counter(piece.outcome for piece in judgement.pieces)
    share = ", ".join(f"{counts[one]} {one}" for one in Outcome if counts[one])
    many = f"; of {len(judgement.pieces)} readings: {share}" if len(others) > 1 else ""
    return f"depends on the reading: {said[0]}, but {said[1]}{many}"


def _holm(judgement: Judgement) -> str:
    """Return in words what Holm's step over the random pieces does."""
    random = [piece for piece in judgement.pieces if piece.random]
    one, p = (
        (Outcome.HOLDS, [piece.p_holds for piece in random])
        if judgement.rule == "some"
        else (Outcome.FAILS, [piece.p_fails for piece in random])
    )
    if len(random) < 2 or min(p) > ALPHA or _certain(judgement, one):
        return ""
    least, product = min(p), min(1.0, len(p) * min(p))
    step = f"the least of {len(p)} p-values, {least:.2g}, times {len(p)} is"
    if judgement.outcome is one:
        return f"; Holm's first step: {step} {product:.2g}, at most {ALPHA:g}"
    if judgement.outcome is not Outcome.UNDECIDED:
        return ""
    piece = random[p.index(least)]
    name = piece.name or piece.deciding.name
    verb = "holds" if one is Outcome.HOLDS else "fails"
    alone = f"; {name} alone {verb}, but not after Holm's first step"
    return f"{alone}: {step} {product:.2g}, above {ALPHA:g}"


def _certain(judgement: Judgement, outcome: Outcome) -> bool:
    """Return whether a piece that is not random decides without a correction."""
    sure = [piece for piece in judgement.pieces if not piece.random]
    return any(piece.outcome is outcome for piece in sure)


def _short(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4g}"


def _counted(judgement: Judgement) -> str:
    """Return how many pieces agree with the deciding one."""
    leaves = judgement.leaves
    if len(leaves) < 2:
        return ""
    same = sum(leaf.outcome is judgement.outcome for leaf in leaves)
    return f" ({same} of {len(leaves)} numbers say {judgement.outcome})"


def _wanting(judgement: Judgement) -> str:
    """Return how many networks would decide."""
    if judgement.outcome is not Outcome.UNDECIDED or not judgement.random:
        return ""
    if not any(math.isfinite(end) for end in judgement.deciding.interval):
        return ""  # the note of an open number already says what is missing
    needed = judgement.needed
    if needed is None:
        return "; more networks alone would not decide it"
    return f"; about {needed} networks per point would decide it"


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
        parts = [f"{_several(self.total, 'claim')}: {self.outcomes}"]
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
    printed = [one for one in given if one.kind is Kind.ERRATUM]
    # What is wrong only as we read it is no error of the paper.
    errata = [one for one in printed if one.grade != Grade.READING]
    return VerdictCounts(
        claims=_by_outcome(claims, not_run),
        hanging=sum(one.hangs_on_ours for one in claims),
        errata=len(errata),
        confirmed=sum(one.confirmed for one in errata),
        beyond=_by_outcome(one for one in given if one.kind is Kind.BEYOND),
        committed=sum(one.rests_on == "committed" for one in given),
        alone=Counter(_beside(one) for one in given if one.alone is not None),
        depends=sum(one.depends_on_reading for one in claims),
        shortened=sum(bool(one.shortened) for one in claims),
        loose=sum(one.grade == Grade.LOOSE for one in errata),
        read_otherwise=sum(one.grade == Grade.READING for one in given),
    )


def _by_outcome(
    verdicts: Iterable[SavedVerdict], not_run: int = 0
) -> dict[Outcome, int]:
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
