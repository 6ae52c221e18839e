"""Pieces of a grid counted on a terminal or in a notebook, as products are."""

from contextlib import ExitStack
from typing import Any

from theodolite.core import Cost
from theodolite.instruments import announced, counted


class PiecesTold:
    """Progress of :func:`train_grid` where none was passed."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def start(self, total: int, done: int, label: str) -> None:
        """Begin to count."""
        self._stack.enter_context(announced("train_grid", unit="pieces", total=total))
        counted(done, unit="pieces")

    def advance(self, cell: Any, cost: Cost) -> None:
        """Count one more finished piece."""
        counted(unit="pieces")

    def finish(self) -> None:
        """Wipe what was said."""
        self._stack.close()
