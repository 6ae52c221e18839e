"""Notice within seconds that a process of a group is gone, or gave up.

A thread of each process counts a beat in the group's store, looks whether the next
process still does, and reads what others have noted there: that one of them failed, or
was lost. Whoever waits for others looks here meanwhile. A store whose host has stopped
keeps who asks it waiting, so the process itself asks by threads, and for so long only.
"""

import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# Beats a second make two requests to the store each. A live process may miss some,
# where its interpreter is held by one long call; one is given up after ``PATIENCE_S``.
_BEAT_S = 0.5
PATIENCE_S = 10.0
# Where a connection broke somebody is gone, and so many seconds of silence tell who.
_SILENCE_S = 2.0
# A turn that no process ever takes: what is noted for it holds for good.
_FOR_GOOD = -1

_watches: "weakref.WeakKeyDictionary[Any, Watch]" = weakref.WeakKeyDictionary()


def watch_of(group: Any, rank: int, size: int) -> "Watch":
    """Return the watch of a process group, begun when it is first asked for."""
    found = _watches.get(group)
    if found is None:
        found = _watches[group] = Watch(_store_of(group), rank, size)
        weakref.finalize(group, found.stop)
    return found


def _store_of(group: Any) -> Any:
    """Return a group's store by a connection of its own.

    On that of the group all would wait for one that waits for a key there.
    """
    from torch.distributed.distributed_c10d import PrefixStore

    return PrefixStore("theodolite", group.get_group_store().clone())


class Watch:
    """Beats for one process and looks after the next.

    Args:
        store: A store of torch that all processes share.
        rank: Place of this process.
        size: How many there are.

    Attributes:
        size: As given.
        turn: Calls that this process made together with the others so far.
        depth: How many times over this process is about to tell of errors.
        broken: Why no further turn can be taken, None while it can.
        waits_since: When the present turn began.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self._rank, self.size = store, rank, size
        self.turn, self.depth = 0, 0
        self.broken: str | None = None
        self._notes: list[tuple[int, int, str]] = []
        self._ended = threading.Event()
        self.waits_since = self._answered = time.monotonic()
        store.add(f"beats/{rank}", 1)  # from now on it counts if there are no more
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._ended.set()

    def trouble(self) -> str | None:
        """Return why the present turn will not be finished, None while it may be."""
        for turn, rank, reason in self._notes:
            if turn in (self.turn, _FOR_GOOD) and rank != self._rank:
                return reason
        if self._stalled():
            return f"what {self.size} ranks share no longer answers, with its host"
        return None

    def give_up(self, reason: str) -> None:
        """Tell the others that this process takes no part in the next turn."""
        self.turn += 1
        self.waits_since = time.monotonic()  # one that computed may not have asked
        self._note(self.turn, self._rank, f"rank {self._rank} failed: {reason}")

    def leave(self, reason: str) -> None:
        """Tell the others that this process takes part no more."""
        self._note(_FOR_GOOD, self._rank, reason)

    def silent(self) -> list[int]:
        """Return the other processes that are seen to beat no more."""
        others = [rank for rank in range(self.size) if rank != self._rank]

        def look() -> list[int]:
            found = self._still_silent(others)
            # Where several are, some may be slow, and have another chance.
            return found if len(found) < 2 else self._still_silent(found)

        return self._asked(look) or []

    def _stalled(self) -> bool:
        """Say whether the store has not answered for too long.

        A process that computes may keep its own thread from asking; not one that waits.
        """
        since = max(self._answered, self.waits_since)
        return time.monotonic() - since > PATIENCE_S

    def _asked(self, call: Callable[[], Any]) -> Any:
        """Return what a call to the store returns, None where it does not answer."""
        found: list[Any] = []

        def ask() -> None:
            with suppress(RuntimeError):
                found.append(call())

        if not self._stalled():
            asker = threading.Thread(target=ask, daemon=True)
            asker.start()
            asker.join(PATIENCE_S)
        return found[0] if found else None

    def _still_silent(self, ranks: list[int]) -> list[int]:
        before = {rank: self._beats(rank) for rank in ranks}
        time.sleep(_SILENCE_S)
        return [rank for rank in ranks if self._beats(rank) == before[rank] > 0]

    def _beat(self) -> None:
        neighbour, seen, since = (self._rank + 1) % self.size, 0, time.monotonic()
        while not self._ended.wait(_BEAT_S):
            try:
                self._store.add(f"beats/{self._rank}", 1)
                beats = self._beats(neighbour)
                self._read_notes()
            except RuntimeError:
                continue
            self._answered = now = time.monotonic()
            if beats != seen or beats == 0:
                seen, since = beats, now
            elif now - since > PATIENCE_S:
                self._note(_FOR_GOOD, neighbour, lost([neighbour], self.size))
                since = now + 1e9  # said once

    def _beats(self, rank: int) -> int:
        return int(self._store.add(f"beats/{rank}", 0))

    def _note(self, turn: int, rank: int, reason: str) -> None:
        def put() -> bool:
            place = int(self._store.add("notes", 1))
            self._store.set(f"note/{place}", f"{turn} {rank} {reason}")
            return True

        if not self._asked(put):
            self._notes.append((turn, rank, reason))

    def _read_notes(self) -> None:
        count = int(self._store.add("notes", 0))
        while len(self._notes) < count:
            key = f"note/{len(self._notes) + 1}"
            if not self._store.check([key]):
                return
            turn, rank, reason = self._store.get(key).decode().split(" ", 2)
            self._notes.append((int(turn), int(rank), reason))


def lost(ranks: list[int], size: int) -> str:
    """Say which processes are gone."""
    named = " and ".join(map(str, ranks))
    if len(ranks) > 1:
        return f"ranks {named} of {size} were lost"
    return f"rank {named} of {size} was lost"
