"""Notice within seconds that a process of a group is gone, or gave up.

A thread of each process counts a beat in the group's store, looks whether the next
process still does, and reads what others have noted there: that one of them failed, or
was lost. Whoever waits for others looks here meanwhile.
"""

import threading
import time
import weakref
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
    from torch.distributed.distributed_c10d import PrefixStore

    return PrefixStore("theodolite", group.get_group_store())


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
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self._rank, self.size = store, rank, size
        self.turn, self.depth = 0, 0
        self.broken: str | None = None
        self._notes: list[tuple[int, int, str]] = []
        self._ended = threading.Event()
        self._silent_since: float | None = None
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
        if self._silent_since is not None:
            if time.monotonic() - self._silent_since > PATIENCE_S:
                return f"what {self.size} ranks share no longer answers, with its host"
        return None

    def give_up(self, reason: str) -> None:
        """Tell the others that this process takes no part in the next turn."""
        self.turn += 1
        self._note(self.turn, self._rank, f"rank {self._rank} failed: {reason}")

    def leave(self, reason: str) -> None:
        """Tell the others that this process takes part no more."""
        self._note(_FOR_GOOD, self._rank, reason)

    def silent(self) -> list[int]:
        """Return the other processes that are seen to beat no more."""
        others = [rank for rank in range(self.size) if rank != self._rank]
        try:
            before = {rank: self._beats(rank) for rank in others}
            time.sleep(_SILENCE_S)
            return [rank for rank in others if self._beats(rank) == before[rank] > 0]
        except RuntimeError:
            return []

    def _beat(self) -> None:
        neighbour, seen, since = (self._rank + 1) % self.size, 0, time.monotonic()
        while not self._ended.wait(_BEAT_S):
            try:
                self._store.add(f"beats/{self._rank}", 1)
                beats = self._beats(neighbour)
                self._read_notes()
                self._silent_since = None
            except RuntimeError:
                self._silent_since = self._silent_since or time.monotonic()
                continue
            now = time.monotonic()
            if beats != seen or beats == 0:
                seen, since = beats, now
            elif now - since > PATIENCE_S:
                self._note(_FOR_GOOD, neighbour, lost([neighbour], self.size))
                since = now + 1e9  # said once

    def _beats(self, rank: int) -> int:
        return int(self._store.add(f"beats/{rank}", 0))

    def _note(self, turn: int, rank: int, reason: str) -> None:
        try:
            place = int(self._store.add("notes", 1))
            self._store.set(f"note/{place}", f"{turn} {rank} {reason}")
        except RuntimeError:
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
    if not ranks:
        return f"one of {size} ranks was lost"
    named = " and ".join(map(str, ranks))
    if len(ranks) > 1:
        return f"ranks {named} of {size} were lost"
    return f"rank {named} of {size} was lost"
