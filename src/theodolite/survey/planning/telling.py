"""Progress of a survey in a terminal: how long it takes, what runs, what is next."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from ..records.telling import format_seconds


class Progress:
    """One progress line that is overwritten; silent unless the output is a terminal.

    Args:
        wanted: Whether the caller wants progress.
        stream: Stream to write to.
    """

    def __init__(self, *, wanted: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self.shown = wanted and self._stream.isatty()
        self._line: Any = None

    @contextmanager
    def open(self) -> Iterator["Progress"]:
        """Show a line inside the context, and clear it after."""
        if not self.shown:
            yield self
            return
        from rich.console import Console
        from rich.status import Status

        with Status(
            "survey", console=Console(file=self._stream, highlight=False)
        ) as self._line:
            yield self

    def announce(self, gradients: float, gradient_s: float) -> None:
        """Write about how long the survey will take, from the time of one gradient."""
        if self._line is not None:
            self._line.console.print(
                f"about {format_seconds(gradients * gradient_s)}: {gradients:.0f} "
                f"gradients of {format_seconds(gradient_s)} each"
            )

    def tell(self, name: str, rest: Sequence[str]) -> None:
        """Show what runs now, and what comes next."""
        if self._line is not None:
            following = f", next {rest[0]}" if rest else ""
            more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
            self._line.update(f"{name}{following}{more}")
