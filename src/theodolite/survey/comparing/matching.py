"""Blocks of two networks paired: by name, else by depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..records.block import Block


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
