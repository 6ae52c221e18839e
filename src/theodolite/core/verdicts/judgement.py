r"""A number judged against a region, and judgements joined.

HOLDS if the interval lies in the region, FAILS if it lies outside, UNDECIDED if it
meets both. An interval has two bounds, each wrong with probability at most $\alpha$
against a region with one end, $\alpha/2$ against one with two: either way a wrong
HOLDS and a wrong FAILS each have probability at most $\alpha$.

*Every* holds if each piece does, at the full level, since one false piece would have
to hold wrongly; it fails if some piece fails after Bonferroni over the pieces that are
random (of Holm's steps the first decides). *Some* is its mirror image. *Readings* hold
if all hold and fail if all fail, each at the full level: whichever reading is the
right one, its own test must be wrong first.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ..rows import to_json_values
from .quantity import Quantity, known
from .sample import Read
from .selecting import PredictedAndMeasured, Region

# Probability of either wrong answer, at most.
ALPHA = 0.05


class Outcome(StrEnum):
    """What the numbers say of a claim; NOT RUN if there are no numbers at all."""

    HOLDS = "HOLDS"
    FAILS = "FAILS"
    UNDECIDED = "UNDECIDED"
    NOT_RUN = "NOT RUN"


_NO = Outcome.NOT_RUN
_OPPOSITE = {Outcome.HOLDS: Outcome.FAILS, Outcome.FAILS: Outcome.HOLDS}


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """An outcome, its p-values, and the numbers that decide it.

    Attributes:
        name: What was judged, in words.
        rule: "number" for a leaf; "every", "some", "against" or "readings" for a join.
        p_holds: How probable such numbers are if the claim is false.
        p_fails: How probable such numbers are if the claim is true.
        random: Whether the numbers are random.
        quantity: The number of a leaf.
        region: The region of a leaf.
        pieces: The joined judgements.
        note: Why nothing could be judged; of a reading, what it is and its source.
        missing: Whether there are no rows to judge.
    """

    name: str
    rule: str
    p_holds: float
    p_fails: float
    random: bool
    quantity: Quantity | None = None
    region: Region | None = None
    pieces: tuple["Judgement", ...] = ()
    note: str = ""
    missing: bool = False

    @property
    def outcome(self) -> Outcome:
        """The outcome at the significance level of all verdicts."""
        if self.missing:
            return Outcome.NOT_RUN
        if self.p_holds <= ALPHA:
            return Outcome.HOLDS
        return Outcome.FAILS if self.p_fails <= ALPHA else Outcome.UNDECIDED

    @property
    def leaves(self) -> tuple["Judgement", ...]:
        """All single numbers below this node."""
        if self.quantity is not None:
            return (self,)
        return tuple(leaf for piece in self.pieces for leaf in piece.leaves)

    @property
    def decider(self) -> int | None:
        """Index of the piece that decides: it fails, or is nearest to failing."""
        if not self.pieces:
            return None
        outcome = self.outcome
        places = range(len(self.pieces))
        first = self.pieces[0].outcome
        if self.rule == "against":  # the rival decides only what it alone keeps open
            return int(outcome is Outcome.UNDECIDED and first is Outcome.HOLDS)
        if self.rule == "readings" and (outcome is first or _readings_differ(self)):
            return self._turning
        if outcome is Outcome.FAILS:  # one piece refutes "every", all refute "some"
            pick = max if self.rule == "some" else min
            return pick(places, key=lambda place: self.pieces[place].p_fails)
        alike = [place for place in places if self.pieces[place].outcome is outcome]
        pick = min if self.rule == "some" else max
        return pick(alike or places, key=lambda place: _doubt(self.pieces[place]))

    @property
    def _turning(self) -> int:
        """Index of the reading that contradicts the first, else of one that differs."""
        said = [piece.outcome for piece in self.pieces]
        others = [place for place, one in enumerate(said) if one not in (said[0], _NO)]
        against = [place for place in others if said[place] is _OPPOSITE.get(said[0])]
        return next(iter(against + others), 0)

    @property
    def deciding(self) -> "Judgement":
        """The leaf that decides."""
        place = self.decider
        return self if place is None else self.pieces[place].deciding

    @property
    def hangs_on_ours(self) -> bool:
        """Whether a region that is not the paper's decides."""
        return any(
            leaf.region is not None and leaf.region.source == "ours"
            for leaf in self.leaves
        )

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of a leaf, at the level that its region needs."""
        if self.quantity is None or self.region is None:
            return -math.inf, math.inf
        alpha = ALPHA / 2 if self.region.two_sided else ALPHA
        return self.quantity.lower(alpha), self.quantity.upper(alpha)

    @property
    def turns_at(self) -> float | None:
        """End of a leaf's region at which its verdict would change.

        For a region around zero, the margin; None where nothing is decided.
        """
        if self.region is None or self.outcome is Outcome.UNDECIDED:
            return None
        low, high = self.interval
        inside = self.outcome is Outcome.HOLDS
        ends = self.region.low, self.region.high
        if self.region.two_sided:
            centre = (ends[0] + ends[1]) / 2
            far = sorted((abs(low - centre), abs(high - centre)))
            return far[1] if inside else far[0]
        return high if (math.isfinite(ends[1]) == inside) else low

    @property
    def needed(self) -> int | None:
        """Networks per point that would decide an open verdict, if any number would."""
        if self.outcome is not Outcome.UNDECIDED:
            return None
        counts = [
            leaf.quantity.needed(leaf.region.low, leaf.region.high, _end(leaf.region))
            for leaf in self.leaves
            if leaf.quantity is not None
            and leaf.region is not None
            and leaf.outcome is Outcome.UNDECIDED
        ]
        if not counts or any(count is None for count in counts):
            return None
        return max(count for count in counts if count is not None)

    @property
    def because(self) -> str:
        """The reason: the number that decides, its interval and its region."""
        from .reasons import reason

        return reason(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; infinite ends are None."""
        low, high = self.interval
        content: dict[str, Any] = {
            "name": self.name,
            "rule": self.rule,
            "outcome": str(self.outcome),
            "p_holds": self.p_holds,
            "p_fails": self.p_fails,
            "note": self.note,
        }
        if self.quantity is not None and self.region is not None:
            content |= {
                "value": _finite(self.quantity.value),
                "error": _finite(self.quantity.error),
                "low": _finite(low),
                "high": _finite(high),
                "n": self.quantity.n,
                "region": self.region.to_dict(),
                "turns_at": self.turns_at,
                "note": self.quantity.note,
            }
        if self.pieces:
            content["decider"] = self.decider
            content["pieces"] = [piece.to_dict() for piece in self.pieces]
        return to_json_values(content)


def judge(quantity: Quantity, region: Region) -> Judgement:
    """Judge whether a number lies in a region.

    Example:
        >>> from theodolite.core import above, sampled
        >>> print(judge(sampled("gain", [1.1, 1.2, 1.3]), above(0)).outcome)
        HOLDS
    """
    sides = 2 if region.two_sided and quantity.random else 1
    holds, fails = [], []
    if math.isfinite(region.low):
        holds.append(quantity.p_above(region.low, strict=region.low_open))
        fails.append(quantity.p_below(region.low, strict=not region.low_open))
    if math.isfinite(region.high):
        holds.append(quantity.p_below(region.high, strict=region.high_open))
        fails.append(quantity.p_above(region.high, strict=not region.high_open))
    return Judgement(
        name=quantity.name,
        rule="number",
        p_holds=min(1.0, sides * max(holds)),
        p_fails=min(1.0, sides * min(fails)),
        random=quantity.random,
        quantity=quantity,
        region=region,
        missing=quantity.missing,
    )


def all_of(pieces: Sequence[Judgement], name: str = "") -> Judgement:
    """Judge whether every piece holds."""
    if not pieces:
        return undecided("there was nothing to judge", name, missing=True)
    return Judgement(
        name=name,
        rule="every",
        p_holds=max(piece.p_holds for piece in pieces),
        p_fails=_corrected(pieces, [piece.p_fails for piece in pieces]),
        random=any(piece.random for piece in pieces),
        pieces=tuple(pieces),
        missing=all(piece.missing for piece in pieces),
    )


def any_of(pieces: Sequence[Judgement], name: str = "") -> Judgement:
    """Judge whether at least one piece holds."""
    if not pieces:
        return undecided("there was nothing to judge", name, missing=True)
    return Judgement(
        name=name,
        rule="some",
        p_holds=_corrected(pieces, [piece.p_holds for piece in pieces]),
        p_fails=max(piece.p_fails for piece in pieces),
        random=any(piece.random for piece in pieces),
        pieces=tuple(pieces),
        missing=all(piece.missing for piece in pieces),
    )


def excluding_rival(judgement: Judgement, rival: Judgement) -> Judgement:
    """Return a judgement that holds only if the numbers also exclude the rival.

    If they do not, the rows cannot distinguish the claim from its rival, and the claim
    is undecided. A claim that fails does so independently of the rival.
    """
    return Judgement(
        name=judgement.name,
        rule="against",
        p_holds=max(judgement.p_holds, rival.p_holds),
        p_fails=judgement.p_fails,
        random=judgement.random or rival.random,
        pieces=(judgement, rival),
        missing=judgement.missing,
    )


def agreed(readings: Sequence[Judgement], name: str = "") -> Judgement:
    """Return a judgement that holds or fails only if it does under all readings."""
    return replace(
        all_of(readings, name),
        rule="readings",
        p_fails=max(piece.p_fails for piece in readings),
    )


def undecided(why: str, name: str = "", *, missing: bool = False) -> Judgement:
    """Return an undecided judgement, or one that is missing its rows, and why."""
    return Judgement(
        name=name,
        rule="every",
        p_holds=1.0,
        p_fails=1.0,
        random=False,
        note=why,
        missing=missing,
    )


def depends_on_reading(judged: Any) -> bool:
    """Return whether a judgement, or a saved one, is open because readings differ."""
    if judged.outcome is not Outcome.UNDECIDED or not judged.pieces:
        return False
    return _readings_differ(judged) or depends_on_reading(judged.pieces[judged.decider])


def _readings_differ(judged: Any) -> bool:
    said = {piece.outcome for piece in judged.pieces} - {Outcome.NOT_RUN}
    return judged.rule == "readings" and len(said) > 1


def if_exact(judgement: Judgement) -> Judgement:
    """Return the judgement if its numbers were not random, as those of theory are."""
    if judgement.quantity is not None and judgement.region is not None:
        number = judgement.quantity
        exact = known(judgement.name, number.value, number.slack, number.note)
        return judge(exact, judgement.region)
    pieces = [if_exact(piece) for piece in judgement.pieces]
    if not pieces:
        return judgement
    if judgement.rule == "against":
        return excluding_rival(*pieces)
    join = {"some": any_of, "readings": agreed}.get(judgement.rule, all_of)
    return join(pieces, judgement.name)


def renamed(judgement: Judgement, name: str) -> Judgement:
    """Return a judgement under another name."""
    return replace(judgement, name=name)


def _corrected(pieces: Sequence[Judgement], chances: Sequence[float]) -> float:
    # A number that is not random cannot be right or wrong by chance.
    count = sum(piece.random for piece in pieces)
    certain = [p for p, piece in zip(chances, pieces, strict=True) if not piece.random]
    shared = [p for p, piece in zip(chances, pieces, strict=True) if piece.random]
    return min([1.0, *certain, *(min(1.0, count * p) for p in shared)])


def _doubt(piece: Judgement) -> tuple[float, float]:
    """Order pieces by how far they are from holding, then by how near to failing."""
    return piece.p_holds, -piece.p_fails


def _end(region: Region) -> float:
    return ALPHA / 2 if region.two_sided else ALPHA


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# A claim's test: the rows of theory and measurement in, a judgement out.
Test = Callable[[PredictedAndMeasured], Judgement]


def inside(read: Read, region: Region) -> Test:
    """Return a test that a number lies in a region."""
    return lambda both: judge(read(both), region)


def every(*tests: Test | Iterable[Test], name: str = "") -> Test:
    """Return a test that all tests hold; an iterable counts as the tests in it."""
    listed = _listed(tests)
    return lambda both: all_of([test(both) for test in listed], name)


def some(*tests: Test | Iterable[Test], name: str = "") -> Test:
    """Return a test that one or more tests hold; iterables count as their tests."""
    listed = _listed(tests)
    return lambda both: any_of([test(both) for test in listed], name)


def _listed(tests: Iterable[Test | Iterable[Test]]) -> list[Test]:
    return [one for item in tests for one in ([item] if callable(item) else item)]


def against(test: Test, rival: Test) -> Test:
    """Return a test that holds only if its rival is excluded."""
    return lambda both: excluding_rival(test(both), rival(both))
