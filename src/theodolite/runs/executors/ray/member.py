"""What a member of a crew does in its process: take its seat, then answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from theodolite.core import TheodoliteError


@dataclass(frozen=True, kw_only=True)
class Seat:
    """The place of one member among those that work together.

    Attributes:
        rank: From 0.
        size: How many members there are.
        meeting: Host and port where they can find each other.
        threads: Processors that it may use.
        fetch: Returns what a :class:`Handle` stands for.
    """

    rank: int
    size: int
    meeting: tuple[str, int]
    threads: int
    fetch: Callable[["Handle"], Any]


@dataclass(frozen=True)
class Handle:
    """Something in the object store, fetched by those who want it."""

    reference: Any


@dataclass(frozen=True)
class Refused:
    """An error on purpose, which is an answer too."""

    error: TheodoliteError


@runtime_checkable
class Movable(Protocol):
    """What a member holds, where that can go on among others."""

    def move(self, seat: Seat) -> None:
        """Take another seat."""
        ...


class Member:
    """An actor; the first member answers for all.

    Args:
        initialise: A pickled function that prepares the process, or None pickled.
    """

    def __init__(self, initialise: bytes) -> None:
        self._initialise = initialise
        self._begin: Callable[[Seat], Any] | None = None
        self._rank, self._held = 0, None

    def prepare(self, begin: bytes) -> str | None:
        """Import all that will be needed; return what keeps it from working.

        Args:
            begin: Pickled; see :class:`Crew`.
        """
        from ray import cloudpickle

        try:
            function = cloudpickle.loads(self._initialise)
            if function is not None:
                function()
            self._begin = cloudpickle.loads(begin)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    def meeting(self) -> tuple[str, int]:
        """Return this node's address and a port that is free there."""
        import socket

        import ray

        host = ray.util.get_node_ip_address()
        with socket.socket() as found:
            found.bind((host, 0))
            return host, found.getsockname()[1]

    def sit(
        self, rank: int, size: int, meeting: tuple[str, int], threads: int
    ) -> Refused | None:
        """Get ready to work with the others, who may be other ones than before."""
        import ray

        seat = Seat(
            rank=rank,
            size=size,
            meeting=meeting,
            threads=threads,
            fetch=lambda handle: ray.get(handle.reference),
        )
        if self._begin is None:
            raise RuntimeError("a member was seated before it was prepared")
        self._rank = rank
        try:
            if isinstance(self._held, Movable):
                self._held.move(seat)
            else:
                self._held = self._begin(seat)
        except TheodoliteError as error:
            return Refused(error)
        return None

    def ask(self, question: bytes, arguments: tuple[Any, ...]) -> Any:
        """Answer a question together with the others."""
        from ray import cloudpickle

        try:
            answer = cloudpickle.loads(question)(self._held, *arguments)
        except TheodoliteError as error:
            return Refused(error)
        return answer if self._rank == 0 else None
