"""Calls that all processes make together, and which none waits in for ever."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from theodolite.core import TeamError
from theodolite.instruments.team.watch import Watch, lost
from theodolite.instruments.team.wording import first_line

# How often a waiting process looks up: at once, then ever less often.
_FIRST_S, _LAST_S = 5e-5, 2e-2

_ADVICE = "start all ranks again, once what ended it (often memory) is seen to"


class Meeting:
    """A turn that all processes of a group take together.

    Args:
        watch: Who knows of the others.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def hold(self, begin: Callable[[], Any]) -> None:
        """Begin a call and wait for its end.

        Args:
            begin: Begins a collective operation of torch; returns its work.

        Raises:
            TeamError: If a process is lost or fails meanwhile, or did so before.
        """
        watch = self._watch
        if watch.broken is not None:
            raise TeamError(watch.broken)
        watch.turn += 1
        watch.waits_since = time.monotonic()
        try:
            work, pause = begin(), _FIRST_S
            while not work.is_completed():
                if (trouble := watch.trouble()) is not None:
                    raise self._broken(trouble)
                time.sleep(pause)
                pause = min(1.5 * pause, _LAST_S)
            work.wait()
        except RuntimeError as error:
            raise self._broken(self._who(error)) from error

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Tell the others of an error that keeps this process from its next turn.

        They are told where it leaves the innermost of several such blocks, and once: it
        may be caught before it leaves the others. Where all processes fail alike each
        of them gives a turn up, and the next is one that they take together again.
        """
        try:
            yield
        except TeamError:
            raise
        except BaseException as error:
            if self._is_news(error):
                self._watch.give_up(first_line(error))
            raise

    def _is_news(self, error: BaseException) -> bool:
        """Say whether the others have not been told of an error; mark it as told."""
        told = vars(error).setdefault("_told_to", [])
        found = id(self._watch) not in told
        told.append(id(self._watch))
        return found

    def _who(self, error: RuntimeError) -> str:
        """Find who is gone, of whom a broken connection told; else say what it said."""
        size = self._watch.size
        silent = self._watch.silent()
        if (trouble := self._watch.trouble()) is not None:
            return trouble
        if silent is None:
            return self._watch.unanswered
        if silent:
            return lost(silent, size)
        said = first_line(error).split(". ")[0]
        return (
            f"a call that {size} ranks make together failed ({said}): see whether one "
            "of them ended, and start all again"
        )

    def _broken(self, reason: str) -> TeamError:
        said = reason if ": " in reason else f"{reason}: {_ADVICE}"
        self._watch.leave(said)
        return TeamError(said)
