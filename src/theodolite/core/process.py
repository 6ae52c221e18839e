"""One thread measures at a time, long work stops at safe points; and free memory.

A model, the random generators and settings such as the default dtype belong to the
whole process, and a measurement changes them for a while: so one thread measures at a
time, and the others wait. A time limit and Ctrl-C stop a measurement at safe points
only, where nothing is half changed: between two products, two batches or two rows, and
before a layer of the model runs.
"""

# Without the enumerations of signal, which take ten times as long.
import _signal  # pyright: ignore[reportMissingImports]
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Seconds after which a waiting thread says which thread it waits for, and between two
# checks for Ctrl-C while it waits.
_PATIENCE, _LOOK = 60.0, 0.1

_Checks = tuple[Callable[[], None], ...]
_STOP: ContextVar[_Checks] = ContextVar("stop", default=())


def safe_point() -> None:
    """Stop here if a time limit has passed or Ctrl-C was pressed.

    Raises:
        KeyboardInterrupt: It was pressed, and waited until now.
    """
    for check in _STOP.get():
        check()
    if _ctrl_c.pending is not None and not _ctrl_c.busy and _in_main_thread():
        _ctrl_c.deliver()


class StopCheck:
    """Every safe point inside calls a function, which raises to stop the work.

    Args:
        check: Called without arguments.

    Example:
        >>> with StopCheck(lambda: print("is there time?")):
        ...     safe_point()
        is there time?
    """

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._token: Token[_Checks] | None = None

    def __enter__(self) -> Self:
        self._token = _STOP.set((*_STOP.get(), self._check))
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _STOP.reset(self._token)


class Exclusive:
    """A context for one thread of the process at a time; the others wait.

    The same thread may enter it again. Ctrl-C waits for the next safe point or the end
    of the context; pressed twice, it waits only for code that restores a state.

    Args:
        interruptible: Let Ctrl-C stop what runs inside at once, except while a state
            is saved or restored: for code that reaches no safe points.

    Example:
        >>> with Exclusive():
        ...     with Exclusive():
        ...         print("alone")
        alone
    """

    def __init__(self, *, interruptible: bool = False) -> None:
        self._interruptible, self._handles = interruptible, False

    def __enter__(self) -> Self:
        self._handles = _ctrl_c.enter(self._interruptible)
        try:
            _turn.take()
        except BaseException:
            _ctrl_c.leave(self._interruptible, self._handles)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _turn.give_back()
        _ctrl_c.leave(self._interruptible, self._handles)


def exclusive(
    *, interruptible: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run a function inside :class:`Exclusive`.

    Args:
        interruptible: As in :class:`Exclusive`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def alone(*args: P.args, **kwargs: P.kwargs) -> R:
            with Exclusive(interruptible=interruptible):
                return function(*args, **kwargs)

        return alone

    return decorate


class DelayInterrupt:
    """Ctrl-C waits until this context ends, even if it is pressed twice."""

    def __enter__(self) -> None:
        self._counts = _in_main_thread()
        _ctrl_c.busy += self._counts

    def __exit__(self, *_: object) -> None:
        _ctrl_c.busy -= self._counts


class _Turn:
    """A reentrant lock that any thread may release.

    Another thread releases it when it collects a generator that holds the lock.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._free = threading.Condition()
        self._owner: int | None = None
        self._depth = 0
        self._waiting: deque[object] = deque()  # first come, first served

    def take(self) -> None:
        me = threading.get_ident()
        with self._free:
            if self._owner != me and (self._owner is not None or self._waiting):
                self._wait(me)
            self._owner = me
            self._depth += 1

    def give_back(self) -> None:
        with self._free:
            self._depth = max(self._depth - 1, 0)
            if not self._depth:
                self._owner = None
                self._free.notify_all()

    def _wait(self, me: int) -> None:
        began, warned, place = time.monotonic(), False, object()
        self._waiting.append(place)
        try:
            while self._owner not in (None, me) or (
                self._owner is None and self._waiting[0] is not place
            ):
                if not self._free.wait(_LOOK):
                    safe_point()
                if not warned and time.monotonic() - began > _PATIENCE:
                    warned = True
                    warnings.warn(self._held(), RuntimeWarning, stacklevel=4)
        finally:
            self._waiting.remove(place)
            self._free.notify_all()

    def _held(self) -> str:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        return (
            f"thread {threading.current_thread().name!r} has waited {_PATIENCE:.0f} s "
            f"for {names.get(self._owner, 'one that ended')!r}, which holds a model or "
            "the random generators: only one thread of a process measures at a time; "
            "measure in one thread, or in several processes"
        )


class _CtrlC:
    """Handles Ctrl-C in the main thread, the only one that receives it."""

    def __init__(self) -> None:
        self.pending: tuple[int, FrameType | None] | None = None
        self.busy = 0  # blocks that save or restore
        self._depth, self._waits = 0, 0  # blocks, and those in which it waits
        self._before: Any = None

    def enter(self, interruptible: bool) -> bool:
        if not _in_main_thread():
            return False
        if not self._depth:
            before = _signal.getsignal(_signal.SIGINT)
            if not callable(before):  # nothing of Python's
                return False
            self.pending = None
            if before is not _handle:  # which a thread that left last could not unset
                self._before = before
                _signal.signal(_signal.SIGINT, _handle)
        self._depth += 1
        self._waits += not interruptible
        return True

    def leave(self, interruptible: bool, handles: bool) -> None:
        if not handles:
            return
        self._waits -= not interruptible
        self._depth -= 1
        if not self._depth:
            self._hand_back()
        if not self._waits and not self.busy and _in_main_thread():
            self.deliver()

    def _hand_back(self) -> None:
        if not _in_main_thread():  # where Python lets nobody set handlers
            return
        theirs = _signal.signal(_signal.SIGINT, self._before)
        if theirs is not _handle:  # set by what ran inside
            _signal.signal(_signal.SIGINT, theirs)

    def forget(self) -> None:
        """Leave all blocks at once, for a child process that was forked inside them."""
        if self._depth:
            self._hand_back()
        self.pending, self.busy, self._depth, self._waits = None, 0, 0, 0

    def come(self, number: int, frame: FrameType | None) -> None:
        again, self.pending = self.pending is not None, (number, frame)
        if self.busy or _at_an_edge(frame) or (self._waits and not again):
            return
        self.deliver()

    def deliver(self) -> None:
        """Handle the Ctrl-C that waited."""
        if (came := self.pending) is not None:
            self.pending = None
            self._before(*came)


def _handle(number: int, frame: FrameType | None) -> None:
    _ctrl_c.come(number, frame)


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _at_an_edge(frame: FrameType | None) -> bool:
    """Return whether a context is being entered or left."""
    while frame is not None:
        if frame.f_code.co_name in ("__enter__", "__exit__"):
            return True
        frame = frame.f_back
    return False


_turn, _ctrl_c = _Turn(), _CtrlC()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turn.renew)
    os.register_at_fork(after_in_child=_ctrl_c.forget)


_UNKNOWN = 2**63
# The value that cgroups report if there is no limit: a little less than 2⁶³.
_NO_LIMIT = 2**62
_CONTAINER = "/sys/fs/cgroup"
# Files with a container's memory limit, its use, and the cache within that use.
_GROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
    ),
)


def free_memory() -> int:
    """Return the bytes that this process may still allocate, 2⁶³ if unknown.

    Example:
        >>> free_memory() > 0
        True
    """
    return max(0, min(_machine(), _group()))


def _machine() -> int:
    """Return the kernel's available memory, or else all physical memory."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return _UNKNOWN


def _group() -> int:
    """Return what a container may still allocate, if it has a limit."""
    base = Path(_CONTAINER)
    for limit, used, facts in _GROUPS:
        try:
            allowed = int((base / limit).read_text())
            if allowed >= _NO_LIMIT:
                return _UNKNOWN
            return allowed - int((base / used).read_text()) + _cached(base / facts)
        except (OSError, ValueError):
            continue
    return _UNKNOWN


def _cached(path: Path) -> int:
    """Return how much of a container's memory is file cache."""
    rows = (line.split() for line in path.read_text().splitlines())
    return sum(int(value) for name, value in rows if name == "inactive_file")
