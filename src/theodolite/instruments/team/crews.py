"""What an executor must offer to have operators multiplied elsewhere."""

import reprlib
from collections.abc import Callable
from typing import Any, Protocol

from theodolite.core import ConfigError


class Seat(Protocol):
    """The place of one member of a crew, in its own process."""

    @property
    def rank(self) -> int:
        """Its place, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many members there are."""
        ...

    @property
    def meeting(self) -> tuple[str, int]:
        """Host and port where members can find each other."""
        ...

    @property
    def threads(self) -> int:
        """Processors that a member may use."""
        ...

    @property
    def fetch(self) -> Callable[[Any], Any]:
        """Returns what a handle stands for."""
        ...


class Crew(Protocol):
    """Members in processes of their own, which answer together."""

    @property
    def size(self) -> int:
        """How many members there are."""
        ...

    def put(self, value: Any) -> Any:
        """Put something where every member can fetch it; return a handle."""
        ...

    def ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Return the answer of all, also where some were lost meanwhile."""
        ...


class Executor(Protocol):
    """Who has a crew, such as ``RayCluster`` of :mod:`theodolite.runs`."""

    def crew(self, begin: Callable[..., Any]) -> Crew:
        """Return a crew, each member of which holds what ``begin`` makes of its seat.

        The same for the same ``begin``.
        """
        ...


def check_executor(executor: Any) -> None:
    """Refuse what has no crew, and a class in place of what it makes."""
    made = not isinstance(executor, type)
    if made and callable(getattr(executor, "crew", None)):
        return
    came = reprlib.repr(executor) if made else f"the class {executor.__name__}"
    raise ConfigError(
        f"executor is {came}: pass a RayCluster(…) of theodolite.runs, or leave it out "
        "to have products made here"
    )
