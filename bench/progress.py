"""Say what a suite does while it does it."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def say(what: str) -> None:
    """Tell what runs now."""
    print(f"… {what}", flush=True)


def told(items: Iterable[tuple[str, Item]]) -> Iterator[Item]:
    """Go through named items, telling of each what it is and what comes next."""
    waiting = list(items)
    for place, (name, item) in enumerate(waiting):
        after = waiting[place + 1][0] if place + 1 < len(waiting) else "the end"
        say(f"{place + 1} of {len(waiting)}: {name}; next: {after}")
        yield item
