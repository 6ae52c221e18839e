"""Blocks and rows of two surveys paired, and their differences with intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from theodolite.core import Row, Rows

from ..records.block import Block
from ..records.outcomes import identity_of, unlike

# Two-sided 95 % of a normal distribution. It also covers errors that are bounds, not
# standard errors: a + b is at most 1.42 times the root of the sum of their squares.
_WIDTH = 1.96
# Relative error of a float32 number that has no other error.
_ROUNDING = 1e-6
# Labels that say which number a row is; the other labels say how it was measured, such
# as the number of samples.
_WHICH = (
    "module",
    "parameter",
    "optimizer",
    "rank",
    "share",
    "length",
    "node",
    "sample",
)

_UNKNOWN = "a number of samples that it does not say"


@dataclass(frozen=True, kw_only=True)
class BlockPair:
    """A block of each network, or a block that only one network has.

    Attributes:
        before: Block of the first network.
        after: Block of the second.
        by: How they were paired; ``"alone"`` where one is missing.
    """

    before: Block | None
    after: Block | None
    by: Literal["name", "depth", "alone"]

    @property
    def name(self) -> str:
        """Name of the block; both names where they differ."""
        names = [one.name for one in (self.before, self.after) if one is not None]
        return " → ".join(dict.fromkeys(names))


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of one number between two networks.

    Attributes:
        measure: Name of the measure.
        quantity: Name of the quantity.
        labels: Which number of the quantity, such as block, module or rank.
        before: The first network's number.
        after: The second's.
        before_error: Its error, None where it is exact.
        after_error: Likewise.
        difference: After less before.
        low: Lower end of the difference's interval, at 95 %.
        high: Upper end.
        changed: ``"up"`` or ``"down"`` where the interval excludes zero, else ``"no"``.
    """

    measure: str
    quantity: str
    before: float
    after: float
    before_error: float | None = None
    after_error: float | None = None
    difference: float
    low: float
    high: float
    changed: Literal["up", "down", "no"]
    labels: Mapping[str, Any] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """Return the difference as a flat row; its error is half of the interval."""
        return {
            "measure": self.measure,
            "quantity": self.quantity,
            **self.labels,
            "value": self.difference,
            "error": (self.high - self.low) / 2,
            "low": self.low,
            "high": self.high,
            "changed": self.changed,
            "before": self.before,
            "before_error": self.before_error,
            "after": self.after,
            "after_error": self.after_error,
        }


def differences_of(
    before: Rows, after: Rows, pairs: Sequence[BlockPair]
) -> tuple[Difference, ...]:
    """Return the difference of every number that each survey has exactly once.

    Numbers of unlike quantities, such as on different sample counts, in different norm
    modes, or of which one did not converge, are left out: see :func:`not_compared`.

    Args:
        before: Rows of the first survey.
        after: Rows of the second.
        pairs: Which block of the one is which of the other.
    """
    ours, theirs, titles = _paired(before, after, pairs)
    return tuple(
        _difference(ours[key], theirs[key], titles)
        for key in ours
        if key in theirs and not any(_unlike(ours[key], theirs[key]))
    )


def not_compared(
    before: Rows, after: Rows, pairs: Sequence[BlockPair]
) -> tuple[str, ...]:
    """Return the numbers that are of unlike quantities in the two surveys.

    Args:
        before: Rows of the first survey.
        after: Rows of the second.
        pairs: Which block of the one is which of the other.
    """
    ours, theirs, _ = _paired(before, after, pairs)
    quantities: dict[str, dict[str, None]] = {}
    for key in ours:
        if key in theirs and any(words := _unlike(ours[key], theirs[key])):
            against = " against ".join(words)
            quantities.setdefault(against, {})[str(ours[key]["quantity"])] = None
    return tuple(
        f"{against}: {', '.join(names)}" for against, names in quantities.items()
    )


def _unlike(one: Row, other: Row) -> tuple[str, str]:
    """Return how two numbers differ as quantities, in words; empty if they do not."""
    ours, theirs = identity_of(one)[0], identity_of(other)[0]
    if bool(ours) != bool(theirs):
        return ours or _UNKNOWN, theirs or _UNKNOWN
    return unlike(one, other)


def _paired(
    before: Rows, after: Rows, pairs: Sequence[BlockPair]
) -> tuple[dict[Any, Row], dict[Any, Row], dict[str, str]]:
    """Return rows of both surveys by their labels, and names for paired blocks."""
    names = {
        pair.after.name: pair.before.name
        for pair in pairs
        if pair.before is not None and pair.after is not None
    }
    titles = {p.before.name: p.name for p in pairs if p.before and p.after}
    return _single(before, {}), _single(after, names), titles


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
    if names and block is not None and block != "whole":
        block = names.get(block, ("alone", block))
    labels = tuple(str(row.get(label)) for label in _WHICH)
    return (row.get("measure"), row["quantity"], str(block), *labels)


def _difference(one: Row, other: Row, titles: Mapping[str, str]) -> Difference:
    before, after = float(one["value"]), float(other["value"])
    errors = [e if isinstance(e := row.get("error"), int | float) else 0.0
              for row in (one, other)]  # fmt: skip
    counts = before.is_integer() and after.is_integer()
    rounding = 0.0 if counts else _ROUNDING * max(abs(before), abs(after))
    half = math.hypot(_WIDTH * math.hypot(*errors), rounding)
    gap = after - before
    low, high = gap - half, gap + half
    labels = {k: one[k] for k in _WHICH if one.get(k) is not None}
    if (block := one.get("block")) is not None:
        labels = {"block": titles.get(block, block), **labels}
    return Difference(
        measure=str(one.get("measure", "")),
        quantity=str(one["quantity"]),
        labels=labels,
        before=before,
        after=after,
        before_error=one.get("error"),
        after_error=other.get("error"),
        difference=gap,
        low=low,
        high=high,
        changed="up" if low > 0 else "down" if high < 0 else "no",
    )


def match_blocks(
    before: Sequence[Block], after: Sequence[Block]
) -> tuple[BlockPair, ...]:
    """Pair the blocks of two networks, in order of depth.

    Blocks of equal names that come in the same order are pairs. Between two such pairs
    the others are paired one by one while their kinds agree; the rest stay unpaired.

    Example:
        >>> a = [Block(index=i, name=n, kind="plain") for i, n in enumerate("xyz")]
        >>> b = [Block(index=i, name=n, kind="plain") for i, n in enumerate("xz")]
        >>> [(pair.name, pair.by) for pair in match_blocks(a, b)]
        [('x', 'name'), ('y', 'alone'), ('z', 'name')]
    """
    anchors = _anchors([one.name for one in before], [one.name for one in after])
    pairs: list[BlockPair] = []
    left = right = 0
    for i, j in [*anchors, (len(before), len(after))]:
        pairs += _between(before[left:i], after[right:j])
        if i < len(before) and j < len(after):
            pairs.append(BlockPair(before=before[i], after=after[j], by="name"))
        left, right = i + 1, j + 1
    return tuple(pairs)


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest common subsequence of names, as pairs of places."""
    n, m = len(before), len(after)
    best = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            same = before[i] == after[j]
            skipped = max(best[i + 1][j], best[i][j + 1])
            best[i][j] = best[i + 1][j + 1] + 1 if same else skipped
    pairs, i, j = [], 0, 0
    while i < n and j < m:
        if before[i] == after[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _between(before: Sequence[Block], after: Sequence[Block]) -> list[BlockPair]:
    pairs: list[BlockPair] = []
    i = j = 0
    while i < len(before) and j < len(after):
        if before[i].kind == after[j].kind:
            pairs.append(BlockPair(before=before[i], after=after[j], by="depth"))
            i, j = i + 1, j + 1
        elif len(before) - i > len(after) - j:
            pairs.append(BlockPair(before=before[i], after=None, by="alone"))
            i += 1
        else:
            pairs.append(BlockPair(before=None, after=after[j], by="alone"))
            j += 1
    pairs += [BlockPair(before=one, after=None, by="alone") for one in before[i:]]
    pairs += [BlockPair(before=None, after=one, by="alone") for one in after[j:]]
    return pairs
