"""Processor time of two ways to one result, taken in turns."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from bench.progress import say


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Attributes:
        task: What is computed.
        peer: What ours is set beside.
        ratio: Processor time of the peer in units of ours; None where not compared.
        agree: How near the results are.
        note: What else there is to say.
        memory: Peak memory of the peer and of ours.
    """

    task: str
    peer: str
    ratio: float | None
    agree: str
    note: str = ""
    memory: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values."""
        return asdict(self)


def cpu_seconds(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the least processor time over repeats, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def beside(
    task: str,
    ours: Callable[[], Any],
    peer: str,
    theirs: Callable[[], Any],
    gap: Callable[[Any, Any], float],
    *,
    tolerance: float,
    repeats: int = 3,
    peer_repeats: int = 1,
    note: str = "",
) -> Result:
    """Check that two results agree, then compare what they cost."""
    say(f"{task}, beside {peer}")
    mine, first = cpu_seconds(ours, repeats)
    other, second = cpu_seconds(theirs, peer_repeats)
    distance = gap(first, second)
    if not distance <= tolerance:
        return Result(task, peer, None, f"no: {distance:.1e}", "results differ")
    return Result(task, peer, other / mine, f"to {distance:.0e}", note)


def in_turns(
    ways: dict[str, Callable[[], Any]], rounds: int, *, warm: bool = True
) -> dict[str, float]:
    """Return the least processor time of each way, taken in turns.

    Args:
        ways: Functions by name.
        rounds: How often each is timed.
        warm: Whether to call each once before.
    """
    best = dict.fromkeys(ways, float("inf"))
    if warm:
        for function in ways.values():
            function()
    for _ in range(rounds):
        for name, function in ways.items():
            best[name] = min(best[name], cpu_seconds(function, 1)[0])
    return best
