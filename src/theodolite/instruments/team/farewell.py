"""Have others told that this process ends, however it does.

An error that nobody catches passes ``sys.excepthook``, after which the process may wait
for threads of its own for long; any other end passes ``atexit``. Children of
``multiprocessing`` pass neither, and run what is registered there. A process that is
killed says nothing, and one at a prompt lives on after an error.
"""

import atexit
import multiprocessing.util
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from theodolite.instruments.team.wording import first_line


class Tell(Protocol):
    """Tells others how this process ended."""

    def __call__(self, reason: str, *, failed: bool) -> None:
        """Tell of a reason, and whether it is an error."""
        ...


# Who tells, by the process that asked for it: a fork of it is another one.
_tellers: dict[int, Tell] = {}


def tell_by(tell: Tell) -> None:
    """Have a function called once when this process ends; the first that is given."""
    if os.getpid() in _tellers:
        return
    _tellers[os.getpid()] = tell
    sys.excepthook = _after(sys.excepthook)
    atexit.register(_ended)
    # After what closes queues and pools there, whose priorities are higher.
    multiprocessing.util.Finalize(None, _ended, exitpriority=-1000)


def _after(before: Callable[..., object]) -> Callable[..., None]:
    """Return a hook that tells of an error after it was printed."""

    def hook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        try:
            before(kind, error, trace)
        finally:
            if not hasattr(sys, "ps1"):
                _tell(error)

    return hook


def _ended() -> None:
    error = sys.exc_info()[1]  # in which a child of ``multiprocessing`` ends
    # One that is started by torch ends by SystemExit, whatever happened.
    _tell(error.__context__ if isinstance(error, SystemExit) else error)


def _tell(error: BaseException | None) -> None:
    tell = _tellers.pop(os.getpid(), None)
    if tell is None:
        return
    if error is None:
        tell("ended, where others still wait for it", failed=False)
    else:
        tell(f"failed: {type(error).__name__}: {first_line(error)}", failed=True)
