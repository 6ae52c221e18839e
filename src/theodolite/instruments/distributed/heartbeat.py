"""Detect within seconds that a process of a group is gone or has failed.

In each process, a thread increments a counter in the group's store, checks that the
counter of the next rank still moves, and reads the notes of the others: that one of
them failed, ended or was lost. A process that waits for others checks here meanwhile. A
store whose host has stopped never answers, so the process asks it by threads with a
time limit.
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

from theodolite.core import DistributedError

from .exit_notice import notify_at_exit

# Each beat makes two requests to the store. A live process may miss some while one long
# call holds its interpreter; it counts as lost after ``PATIENCE_S``.
_BEAT_S = 0.5
PATIENCE_S = 10.0
# After a broken connection, a rank that is silent for so many seconds counts as lost.
_SILENCE_S = 2.0
# A process that ends waits at most so long until the others have read its note.
_STAY_S = 2.0
# A turn that is never reached.
_NEVER = 2**62

_heartbeats: "weakref.WeakKeyDictionary[Any, Heartbeat]" = weakref.WeakKeyDictionary()


def heartbeat_of(group: Any, rank: int, size: int) -> "Heartbeat":
    """Return the heartbeat of a process group, started on the first call."""
    heartbeat = _heartbeats.get(group)
    if heartbeat is None:
        heartbeat = _heartbeats[group] = Heartbeat(_store_of(group), rank, size)
        heartbeat.group = weakref.ref(group)
        weakref.finalize(group, heartbeat.stop)
        notify_at_exit(_notify_groups)
    return heartbeat


def _notify_groups(reason: str, *, failed: bool) -> None:
    """Tell all groups that this process ends."""
    for heartbeat in list(_heartbeats.values()):
        heartbeat.end(reason, stay=failed or heartbeat.rank == 0)


def _store_of(group: Any) -> Any:
    """Return a group's store over a separate connection.

    On the group's own connection, one call that waits for a key blocks all others.
    Stores can be cloned since torch 2.8; groups return theirs only in later versions.
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
        raise DistributedError(
            "what the ranks share does not answer, with its host, often that of rank "
            "0: start all ranks again"
        )
    return made[0]


@dataclass(frozen=True)
class Note:
    """What a process wrote into the store for the others.

    Attributes:
        first: First turn that it is about.
        last: Last turn that it is about.
        rank: Process that takes no part in these turns.
        reason: Why.
    """

    first: int
    last: int
    rank: int
    reason: str

    def written(self) -> str:
        """Return the note as text for the store."""
        return f"{self.first} {self.last} {self.rank} {self.reason}"

    @staticmethod
    def read(text: str) -> "Note":
        """Return the note that :meth:`written` turned into text."""
        first, last, rank, reason = text.split(" ", 3)
        return Note(int(first), int(last), int(rank), reason)


class Heartbeat:
    """Shows the others that this process lives, and watches the next rank.

    Args:
        store: A store of torch that all processes share.
        rank: Place of this process.
        size: How many there are.

    Attributes:
        rank: As given.
        size: As given.
        turn: Number of collective calls so far.
        broken: Why no further call is possible; None while calls are possible.
        group: Weak reference to torch's group, if there is one.
        waits_since: When the present call began.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self.rank, self.size = store, rank, size
        self.turn = 0
        self.broken: str | None = None
        self.group: Callable[[], Any] | None = None
        self._notes: list[Note] = []  # in the store's order
        self._own_notes: list[Note] = []  # not accepted by the store
        self._requests: queue.SimpleQueue[Callable[[], None] | None] = (
            queue.SimpleQueue()
        )
        self.waits_since = self._answered = time.monotonic()
        store.add(f"beats/{rank}", 1)  # from now on it counts if there are no more
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._requests.put(None)

    def trouble(self) -> str | None:
        """Return why the present call cannot finish, None if it can."""
        for note in (*self._notes, *self._own_notes):
            if note.first <= self.turn <= note.last and note.rank != self.rank:
                return note.reason
        return self.unanswered if self._stalled() else None

    @property
    def unanswered(self) -> str:
        """The error message if the store does not answer."""
        return f"what {self.size} ranks share no longer answers, with its host"

    def give_up(self, reason: str) -> None:
        """Tell the others that this process takes no part in the next call."""
        self.turn += 1
        self.waits_since = time.monotonic()  # while it computed, it may not have asked
        reason = f"rank {self.rank} failed: {reason}"
        self._note(Note(self.turn, self.turn, self.rank, reason))

    def leave(self, reason: str) -> None:
        """Take part in no further call, and tell the others so.

        A call that never ends stays pending. torch would wait for it when the group is
        deleted, so one more reference keeps the group alive.
        """
        self.broken = reason
        group = None if self.group is None else self.group()
        if group is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
        self._note(Note(0, _NEVER, self.rank, reason))

    def end(self, reason: str, *, stay: bool) -> None:
        """Tell the others that this process ends and takes no part in later calls.

        At exit only the heartbeat's thread can do so. Calls already begun may finish.

        Args:
            reason: How it ended.
            stay: Whether to wait a moment until the others have read it, since the
                store may end with this process, often rank 0.
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

        self._requests.put(tell)
        done.wait(_STAY_S)
        self._finish()

    def _finish(self) -> None:
        """End the thread and wait for it.

        A thread inside a call of torch aborts an interpreter that shuts down.
        """
        self.stop()
        self._thread.join(_STAY_S)

    def silent(self) -> list[int] | None:
        """Return the silent ranks, None if the store does not answer."""
        others = [rank for rank in range(self.size) if rank != self.rank]

        def look() -> list[int]:
            ranks = self._still_silent(others)
            # Of several, some may only be slow, so they are checked twice.
            return ranks if len(ranks) < 2 else self._still_silent(ranks)

        return self._asked(look)

    def _stalled(self) -> bool:
        """Return whether the store has not answered for too long.

        Computing may keep the thread from asking; waiting does not.
        """
        since = max(self._answered, self.waits_since)
        return time.monotonic() - since > PATIENCE_S

    def _asked(self, call: Callable[[], Any]) -> Any:
        """Return the result of a call to the store, None if there is no answer."""
        answers: list[Any] = []

        def ask() -> None:
            with suppress(RuntimeError):
                answers.append(call())

        if not self._stalled():
            asker = threading.Thread(target=ask, daemon=True)
            asker.start()
            asker.join(PATIENCE_S)
        return answers[0] if answers else None

    def _still_silent(self, ranks: list[int]) -> list[int]:
        before = {rank: self._beats(rank) for rank in ranks}
        end = time.monotonic() + _SILENCE_S
        while time.monotonic() < end:
            if self.trouble() is not None:
                return []  # the note says more
            time.sleep(_BEAT_S / 10)
        return [rank for rank in ranks if self._beats(rank) == before[rank] > 0]

    def _until_read(self) -> None:
        """Wait until the others have beaten twice, and so have read the notes between.

        Ranks that end as well are not waited for.
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
        """Run requests until the next beat is due; return whether to stop."""
        due = time.monotonic() + _BEAT_S
        with suppress(queue.Empty):
            while True:
                request = self._requests.get(timeout=max(0.0, due - time.monotonic()))
                if request is None:
                    return True
                request()
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
                since = now + 1e9  # written once

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
    """Return the message that names the lost ranks."""
    named = " and ".join(map(str, ranks))
    if len(ranks) > 1:
        return f"ranks {named} of {size} were lost"
    return f"rank {named} of {size} was lost"
