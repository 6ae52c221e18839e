"""The reason of a verdict in words: the number that decides, its rival, Holm's step."""

import math
from collections import Counter

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
