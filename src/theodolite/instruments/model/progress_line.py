"""Progress of a measurement: products counted on a terminal or in a notebook.

Nothing is shown in the first seconds, or if the output is no terminal or notebook. Of
nested instruments only the outermost is shown.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError, printable

from .process_state import COUNT, SETTING, is_watched

# Seconds before the first update, and between two.
_PATIENCE, _PAUSE = 5.0, 0.2


@dataclass(frozen=True, kw_only=True)
class ProgressUpdate:
    """How far a measurement is.

    Attributes:
        what: Name of the instrument.
        done: Products so far, or what else is counted.
        total: How many there will be, at most where ``bounded``; None if not known.
        unit: Unit of the count.
        seconds: Seconds since it began.
        bounded: Whether it may end before ``total``.
        finished: Whether it has ended.
    """

    what: str
    done: int
    total: int | None
    unit: str
    seconds: float
    bounded: bool = False
    finished: bool = False

    def __str__(self) -> str:
        """Return the progress as a sentence.

        Example:
            >>> counts = {"done": 9, "total": 60, "unit": "products"}
            >>> print(ProgressUpdate(what="trace", seconds=7, **counts))
            trace: 9 of 60 products, 7 s
        """
        most = "at most " if self.bounded else ""
        of = "" if self.total is None else f" of {most}{self.total:,}"
        return f"{self.what}: {self.done:,}{of} {self.unit}, {self.seconds:.0f} s"


Tell = Callable[[ProgressUpdate], object]


@dataclass(frozen=True)
class _Setting:
    tell: Tell | None
    after: float


@contextmanager
def progress(tell: bool | Tell = True, *, after: float = _PATIENCE) -> Iterator[None]:
    """Set how progress is shown inside: not at all, sooner, or by a function.

    Without it, a measurement that takes more than five seconds counts its products on
    one line of standard error, which is wiped at its end, where that is a terminal or
    in a notebook; elsewhere it is silent.

    Args:
        tell: False for silence, True for a line wherever standard error goes, or a
            function of a :class:`ProgressUpdate`, which must not touch the model that
            is being measured.
        after: Seconds before the first word.

    Example:
        >>> from theodolite.instruments import MatrixOperator, ProgressUpdate
        >>> with progress(False):
        ...     pass
    """
    if not (isinstance(tell, bool) or callable(tell)) or not after >= 0:
        raise ConfigError(
            f"progress({tell!r}, after={after!r}): pass True, False or a function, and "
            "seconds from 0 up"
        )
    chosen = (_Line() if tell else None) if isinstance(tell, bool) else tell
    token = SETTING.set(_Setting(chosen, float(after)))
    try:
        yield
    finally:
        SETTING.reset(token)


@contextmanager
def show_progress(
    what: str, *, unit: str = "products", total: int | None = None
) -> Iterator[None]:
    """Count under this name inside, unless an outer instrument counts already."""
    if COUNT.get() is not None:
        with _deeper():
            yield
        return
    setting = SETTING.get() or _Setting(_Line() if is_watched() else None, 5.0)
    if setting.tell is None:
        yield
        return
    own = _Announcement(what, unit, total, setting)
    token = COUNT.set(own)
    try:
        yield
    finally:
        COUNT.reset(token)
        own.end()


class _Announcement:
    """The count that is shown, and the function that shows it."""

    def __init__(
        self, what: str, unit: str, total: int | None, setting: _Setting
    ) -> None:
        self.what, self.unit, self.total = what, unit, total
        self.bounded, self.done, self.depth = False, 0, 0
        self._tell: Any = setting.tell
        self._began = time.perf_counter()
        self._next = self._began + setting.after
        self._said = False

    def count(self, number: int) -> None:
        self.done += number
        if (now := time.perf_counter()) >= self._next:
            self._next, self._said = now + _PAUSE, True
            self._tell(self._told(now))

    def end(self) -> None:
        if self._said:
            self._tell(self._told(time.perf_counter(), finished=True))

    def _told(self, now: float, *, finished: bool = False) -> ProgressUpdate:
        return ProgressUpdate(
            what=self.what,
            done=self.done,
            total=self.total,
            unit=self.unit,
            seconds=now - self._began,
            bounded=self.bounded,
            finished=finished,
        )


@contextmanager
def _deeper() -> Iterator[None]:
    own = COUNT.get()
    if own is None:
        yield
        return
    own.depth += 1
    try:
        yield
    finally:
        own.depth -= 1


class _Line:
    """One line that is written over and wiped at the end."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, told: ProgressUpdate) -> None:
        text = "" if told.finished else printable(str(told))
        stream = sys.stderr
        try:
            stream.write("\r" + text.ljust(self._width) + ("\r" if not text else ""))
            stream.flush()
        except (OSError, ValueError):  # closed, or full
            return
        self._width = len(text)
