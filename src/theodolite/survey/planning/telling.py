"""Progress of a survey in a terminal: what runs, what is next, the time left."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from ..records.telling import format_seconds


class Progress:
    """One progress line that is overwritten; silent unless the output is a terminal.

    Args:
        wanted: Whether the caller wants progress.
        stream: Stream to write to.
    """

    def __init__(self, *, wanted: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = wanted and self._stream.isatty()
        self._update: object = None

    @contextmanager
    def open(self) -> Iterator["Progress"]:
        """Show a line inside the context, and clear it after."""
        if not self._shown:
            yield self
            return
        from rich.console import Console
        from rich.status import Status

        with Status("survey", console=Console(file=self._stream)) as line:
            self._update = line.update
            yield self

    def tell(self, name: str, rest: Sequence[str], *, left_s: float) -> None:
        """Show what runs now, what comes next and how much time is left."""
        if callable(self._update):
            following = f", next {rest[0]}" if rest else ""
            more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
            left = format_seconds(max(left_s, 0.0))
            self._update(f"{name}{following}{more}; {left} of the budget left")
