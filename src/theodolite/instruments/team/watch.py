"""Notice within seconds that a process of a group is gone, or gave up.

A thread of each process counts a beat in the group's store, looks whether the next
process still does, and reads what others have noted there: that one of them failed,
ended or was lost. Whoever waits for others looks here meanwhile. A store whose host has
stopped keeps who asks it waiting, so the process itself asks by threads, and for so
long only.
"""

import ctypes
import queue
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from theodolite.core import TeamError
from theodolite.instruments.team import farewell

# Beats a second make two requests to the store each. A live process may miss some,
# where its interpreter is held by one long call; one is given up after ``PATIENCE_S``.
_BEAT_S = 0.5
PATIENCE_S = 10.0
# Where a connection broke somebody is gone, and so many seconds of silence tell who.
_SILENCE_S = 2.0
# A process that ends stays so long at most to be heard.
_STAY_S = 2.0
# A turn that no process ever comes to.
_NEVER = 2**62

_watches: "weakref.WeakKeyDictionary[Any, Watch]" = weakref.WeakKeyDictionary()


def watch_of(group: Any, rank: int, size: int) -> "Watch":
    """Return the watch of a process group, begun when it is first asked for."""
    found = _watches.get(group)
    if found is None:
        found = _watches[group] = Watch(_store_of(group), rank, size)
        found.group = weakref.ref(group)
        weakref.finalize(group, found.stop)
        farewell.tell_by(_say_farewell)
    return found


def forget_watches() -> None:
    """Beat no more for any group; one that is asked for again has another watch."""
    while _watches:
        _, watch = _watches.popitem()
        watch.stop()


def _say_farewell(reason: str, *, failed: bool) -> None:
    """Tell all groups that this process ends."""
    for watch in list(_watches.values()):
        watch.end(reason, stay=failed or watch.rank == 0)


def _store_of(group: Any) -> Any:
    """Return a group's store by a connection of its own.

    On that of the group all would wait for one that waits for a key there. Stores have
    been cloned since torch 2.8; groups tell theirs only in later ones.
    """
    from torch.distributed import distributed_c10d

    tell = getattr(group, "get_group_store", None)
    shared: Any = tell() if tell else distributed_c10d._get_process_group_store(group)
    made: list[Any] = []

    def connect() -> None:
        with suppress(RuntimeError):
            made.append(distributed_c10d.PrefixStore("theodolite", shared.clone()))

    asker = threading.Thread(target=connect, daemon=True)
    asker.start()
    asker.join(PATIENCE_S)
    if not made:
        raise TeamError(
            "what the ranks share does not answer, with its host, often that of rank "
            "0: start all ranks again"
        )
    return made[0]


@dataclass(frozen=True)
class Note:
    """What a process left for the others.

    Attributes:
        first: Turn from which on it holds.
        last: Turn up to which it does.
        rank: Process that takes no part in them.
        reason: Why.
    """

    first: int
    last: int
    rank: int
    reason: str

    def written(self) -> str:
        """Return it as text."""
        return f"{self.first} {self.last} {self.rank} {self.reason}"

    @staticmethod
    def read(text: str) -> "Note":
        """Return it from text."""
        first, last, rank, reason = text.split(" ", 3)
        return Note(int(first), int(last), int(rank), reason)


class Watch:
    """Beats for one process and looks after the next.

    Args:
        store: A store of torch that all processes share.
        rank: Place of this process.
        size: How many there are.

    Attributes:
        rank: As given.
        size: As given.
        turn: Calls that this process made together with the others so far.
        broken: Why no further turn can be taken, None while it can.
        group: Weakly, the group, where it is one of torch's.
        waits_since: When the present turn began.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self.rank, self.size = store, rank, size
        self.turn = 0
        self.broken: str | None = None
        self.group: Callable[[], Any] | None = None
        self._notes: list[Note] = []  # as the store has them, in its order
        self._own_notes: list[Note] = []  # that it did not take
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = (
            queue.SimpleQueue()
        )
        self.waits_since = self._answered = time.monotonic()
        store.add(f"beats/{rank}", 1)  # from now on it counts if there are no more
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._errands.put(None)

    def trouble(self) -> str | None:
        """Return why the present turn will not be finished, None while it may be."""
        for note in (*self._notes, *self._own_notes):
            if note.first <= self.turn <= note.last and note.rank != self.rank:
                return note.reason
        return self.unanswered if self._stalled() else None

    @property
    def unanswered(self) -> str:
        """What is said where the store does not answer."""
        return f"what {self.size} ranks share no longer answers, with its host"

    def give_up(self, reason: str) -> None:
        """Tell the others that this process takes no part in the next turn."""
        self.turn += 1
        self.waits_since = time.monotonic()  # one that computed may not have asked
        reason = f"rank {self.rank} failed: {reason}"
        self._note(Note(self.turn, self.turn, self.rank, reason))

    def leave(self, reason: str) -> None:
        """Take part no more, and tell the others so.

        A turn that will never end is left pending. torch would wait for it when the
        group goes, with the process at the latest; so the group never goes.
        """
        self.broken = reason
        group = None if self.group is None else self.group()
        if group is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
        self._note(Note(0, _NEVER, self.rank, reason))

    def end(self, reason: str, *, stay: bool) -> None:
        """Tell the others that this process ends, and takes no part in later turns.

        Only the thread that beats can still do so then. Turns that were begun may yet
        be finished.

        Args:
            reason: How it ended.
            stay: Whether to wait a moment until they know: they cannot read what was
                noted in a store that goes with this process, often the first one.
        """
        if self.broken is not None:  # and the others know
            self._finish()
            return
        note = Note(self.turn + 1, _NEVER, self.rank, f"rank {self.rank} {reason}")
        done = threading.Event()

        def tell() -> None:
            with suppress(RuntimeError):
                self._put(note)
                if stay:
                    self._until_read()
            done.set()

        self._errands.put(tell)
        done.wait(_STAY_S)
        self._finish()

    def _finish(self) -> None:
        """Beat no more, and be seen to.

        A thread that is in a call of torch's when the interpreter goes aborts it.
        """
        self.stop()
        self._thread.join(_STAY_S)

    def silent(self) -> list[int] | None:
        """Return the other processes that beat no more, None where nobody can tell."""
        others = [rank for rank in range(self.size) if rank != self.rank]

        def look() -> list[int]:
            found = self._still_silent(others)
            # Where several are, some may be slow, and have another chance.
            return found if len(found) < 2 else self._still_silent(found)

        return self._asked(look)

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
        end = time.monotonic() + _SILENCE_S
        while time.monotonic() < end:
            if self.trouble() is not None:
                return []  # what was noted says more
            time.sleep(_BEAT_S / 10)
        return [rank for rank in ranks if self._beats(rank) == before[rank] > 0]

    def _until_read(self) -> None:
        """Wait until the others have beaten twice, and so have read in between.

        Those that end as well need not be waited for.
        """
        others = {rank for rank in range(self.size) if rank != self.rank}
        before = {rank: self._beats(rank) for rank in others}
        end = time.monotonic() + _STAY_S
        while others and time.monotonic() < end:
            time.sleep(_BEAT_S / 10)
            self._read_notes()
            others -= {note.rank for note in self._notes if note.last == _NEVER}
            others = {r for r in others if self._beats(r) < before[r] + 2}

    def _ended(self) -> bool:
        """Run errands until the next beat is due; say whether it is not to come."""
        due = time.monotonic() + _BEAT_S
        with suppress(queue.Empty):
            while True:
                errand = self._errands.get(timeout=max(0.0, due - time.monotonic()))
                if errand is None:
                    return True
                errand()
        return False

    def _beat(self) -> None:
        neighbour, seen, since = (self.rank + 1) % self.size, 0, time.monotonic()
        while not self._ended():
            try:
                self._store.add(f"beats/{self.rank}", 1)
                beats = self._beats(neighbour)
                self._read_notes()
            except RuntimeError:
                continue
            self._answered = now = time.monotonic()
            if beats != seen or beats == 0:
                seen, since = beats, now
            elif now - since > PATIENCE_S:
                reason = lost([neighbour], self.size)
                self._note(Note(0, _NEVER, neighbour, reason))
                since = now + 1e9  # said once

    def _beats(self, rank: int) -> int:
        return int(self._store.add(f"beats/{rank}", 0))

    def _note(self, note: Note) -> None:
        if not self._asked(lambda: self._put(note)):
            self._own_notes.append(note)

    def _put(self, note: Note) -> bool:
        place = int(self._store.add("notes", 1))
        self._store.set(f"note/{place}", note.written())
        return True

    def _read_notes(self) -> None:
        count = int(self._store.add("notes", 0))
        while len(self._notes) < count:
            key = f"note/{len(self._notes) + 1}"
            if not self._store.check([key]):
                return
            self._notes.append(Note.read(self._store.get(key).decode()))


def lost(ranks: list[int], size: int) -> str:
    """Say which processes are gone."""
    named = " and ".join(map(str, ranks))
    if len(ranks) > 1:
        return f"ranks {named} of {size} were lost"
    return f"rank {named} of {size} was lost"
