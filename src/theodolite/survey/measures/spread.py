"""An order in which a part of a list is spread over the whole of it."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def spread_out(items: Sequence[T]) -> list[T]:
    """Return the ends first, then the middle, then the middles of the halves.

    Example:
        >>> spread_out(range(9))
        [0, 8, 4, 2, 6, 1, 3, 5, 7]
    """
    if len(items) < 3:
        return list(items)
    order, seen = [0, len(items) - 1], {0, len(items) - 1}
    gaps = [(0, len(items) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if middle not in seen:
            seen.add(middle)
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return [items[place] for place in order]
