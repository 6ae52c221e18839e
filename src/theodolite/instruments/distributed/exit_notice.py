"""Notify the other ranks when this process exits, also after a crash.

An uncaught error passes ``sys.excepthook``, after which the process may wait long for
its threads; any other end passes ``atexit``. Children of ``multiprocessing`` pass
neither, and run what is registered there. A killed process notifies nobody, and an
interactive prompt goes on after an error.
"""

import atexit
import multiprocessing.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol

from theodolite.core import DistributedError


class Notify(Protocol):
    """Tells the other ranks how this process ended."""

    def __call__(self, reason: str, *, failed: bool) -> None:
        """Send the reason, and whether it is an error."""
        ...


# By process id, since a fork is another process.
_notifiers: dict[int, Notify] = {}


def notify_at_exit(notify: Notify) -> None:
    """Call a function once when this process ends; only the first one given counts."""
    if os.getpid() in _notifiers:
        return
    _notifiers[os.getpid()] = notify
    sys.excepthook = _after(sys.excepthook)
    atexit.register(_ended)
    # After the functions there that close queues and pools, which have higher priority.
    multiprocessing.util.Finalize(None, _ended, exitpriority=-1000)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class."""
    first = (str(error).strip().splitlines() or [""])[0]
    return first.rstrip(". ") or type(error).__name__


@contextmanager
def raising_on_sigterm(rank: int) -> Iterator[None]:
    """Raise an error that explains SIGTERM, which would end the process silently.

    Launchers such as torchrun send it to all remaining ranks when one is lost. A
    program that handles the signal itself keeps its handler.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(*_: Any) -> None:
        raise DistributedError(
            f"rank {rank} was told to end, as launchers do when another rank was lost: "
            "look at what ended the other, and start all again"
        )

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _after(before: Callable[..., object]) -> Callable[..., None]:
    """Return a hook that sends the notice after the error was printed."""

    def hook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        try:
            before(kind, error, trace)
        finally:
            if not hasattr(sys, "ps1"):
                _notify(error)

    return hook


def _ended() -> None:
    error = sys.exc_info()[1]  # how a child of ``multiprocessing`` ends
    # A child that torch started always ends by SystemExit.
    _notify(error.__context__ if isinstance(error, SystemExit) else error)


def _notify(error: BaseException | None) -> None:
    notify = _notifiers.pop(os.getpid(), None)
    if notify is None:
        return
    if error is None:
        notify("ended, where others still wait for it", failed=False)
    else:
        notify(f"failed: {type(error).__name__}: {first_line(error)}", failed=True)
