"""Blocks and rows of two surveys paired, and their differences with intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from theodolite.core import Row, Rows

from ..records.outcomes import identity_of, unlike
from ..records.whole_survey import Block

# Two-sided 95 % of a normal distribution. It also covers errors that are bounds, not
# standard errors: a + b is at most 1.42 times the root of the sum of their squares.
_WIDTH = 1.96
# Relative error of a float32 number that has no other error.
_ROUNDING = 1e-6
# Labels that say which number a row is; the other labels say how it was measured, such
# as the number of samples.
_WHICH = ("module", "optimizer", "rank", "rate", "step", "factor", "rule")
_UNKNOWN = "a number of samples that it does not say"

# A block of each network; None if only the other one has it.
Pair = tuple[Block | None, Block | None]


def match_blocks(before: Sequence[Block], after: Sequence[Block]) -> tuple[Pair, ...]:
    """Pair the blocks of two networks, in order of depth.

    Blocks of equal names that come in the same order are pairs. Between two such pairs
    the others are paired one by one while their kinds agree; the rest stay unpaired.

    Example:
        >>> a = [Block(index=i, name=n, kind="plain") for i, n in enumerate("xyz")]
        >>> b = [Block(index=i, name=n, kind="plain") for i, n in enumerate("xz")]
        >>> [name_of(pair) for pair in match_blocks(a, b)]
        ['x', 'y', 'z']
    """
    names = [[block.name for block in side] for side in (before, after)]
    matcher = SequenceMatcher(None, *names, autojunk=False)
    pairs: list[Pair] = []
    for _, i, j, k, m in matcher.get_opcodes():
        for one, other in zip_longest(before[i:j], after[k:m]):
            if one is None or other is None or one.kind == other.kind:
                pairs.append((one, other))
            else:
                pairs += [(one, None), (None, other)]
    return tuple(pairs)


def name_of(pair: Pair) -> str:
    """Return the name of a block in both networks; both names where they differ."""
    return " → ".join(dict.fromkeys(one.name for one in pair if one is not None))


def differences_of(
    before: Rows, after: Rows, pairs: Sequence[Pair]
) -> tuple[Rows, tuple[str, ...]]:
    """Return the difference of every number that each survey has exactly once.

    Numbers of unlike quantities, such as on different sample counts, in different norm
    modes, or of which one did not converge, have none.

    Args:
        before: Rows of the first survey.
        after: Rows of the second.
        pairs: Which block of the one is which of the other.

    Returns:
        The differences, and what was not compared: how the numbers are unlike, then
        their names.
    """
    names = {other.name: one.name for one, other in pairs if one and other}
    titles = {one.name: name_of((one, other)) for one, other in pairs if one and other}
    ours, theirs = _single(before, {}), _single(after, names)
    rows: list[dict[str, Any]] = []
    refused: dict[str, dict[str, None]] = {}
    for key, one in ours.items():
        if (other := theirs.get(key)) is None:
            continue
        if any(words := _unlike(one, other)):
            quantities = refused.setdefault(" against ".join(words), {})
            quantities[str(one["quantity"])] = None
        else:
            rows.append(_difference(one, other, titles))
    said = (f"{words}: {', '.join(names)}" for words, names in refused.items())
    return Rows(rows), tuple(said)


def _unlike(one: Row, other: Row) -> tuple[str, str]:
    """Return how two numbers differ as quantities, in words; empty if they do not."""
    ours, theirs = identity_of(one)[0], identity_of(other)[0]
    if bool(ours) != bool(theirs):
        return ours or _UNKNOWN, theirs or _UNKNOWN
    return unlike(one, other)


def _single(rows: Iterable[Row], names: Mapping[str, str]) -> dict[Any, Row]:
    """Return rows by their labels, without labels that several rows share."""
    by_key: dict[Any, Row] = {}
    several = set()
    for row in rows:
        if not isinstance(row.get("value"), int | float):
            continue
        key = _key(row, names)
        if key in by_key:
            several.add(key)
        by_key[key] = row
    return {key: row for key, row in by_key.items() if key not in several}


def _key(row: Row, names: Mapping[str, str]) -> tuple[Any, ...]:
    block = row.get("block")
    # An unpaired block of the second network must not match one of the first.
    if names and block is not None:
        block = names.get(block, ("alone", block))
    labels = tuple(str(row.get(label)) for label in _WHICH)
    return (row.get("measure"), row["quantity"], str(block), *labels)


def _difference(one: Row, other: Row, titles: Mapping[str, str]) -> dict[str, Any]:
    """Return the difference as a row; its error is half of the interval."""
    before, after = float(one["value"]), float(other["value"])
    known = [
        e if isinstance(e := row.get("error"), int | float) else 0.0
        for row in (one, other)
    ]
    counts = before.is_integer() and after.is_integer()
    rounding = 0.0 if counts else _ROUNDING * max(abs(before), abs(after))
    half, gap = math.hypot(_WIDTH * math.hypot(*known), rounding), after - before
    labels = {k: one[k] for k in _WHICH if one.get(k) is not None}
    if (block := one.get("block")) is not None:
        labels = {"block": titles.get(block, block), **labels}
    return {
        "measure": str(one.get("measure", "")),
        "quantity": str(one["quantity"]),
        **labels,
        "value": gap,
        "error": half,
        "low": gap - half,
        "high": gap + half,
        "changed": "up" if gap > half else "down" if gap < -half else "no",
        "before": before,
        "before_error": one.get("error"),
        "after": after,
        "after_error": other.get("error"),
    }
