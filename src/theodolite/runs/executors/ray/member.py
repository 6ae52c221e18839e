"""What a member of a crew does in its process: take its seat, then answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


class Member:
    """An actor; the first member answers for all.

    Args:
        initialise: A pickled function that prepares the process, or None pickled.
    """

    def __init__(self, initialise: bytes) -> None:
        from ray import cloudpickle

        function = cloudpickle.loads(initialise)
        if function is not None:
            function()
        self._rank, self._held = 0, None

    def meeting(self) -> tuple[str, int]:
        """Return this node's address and a port that is free there."""
        import socket

        import ray

        host = ray.util.get_node_ip_address()
        with socket.socket() as found:
            found.bind((host, 0))
            return host, found.getsockname()[1]

    def sit(
        self, begin: bytes, rank: int, size: int, meeting: tuple[str, int], threads: int
    ) -> None:
        """Get ready to work with the others."""
        import ray
        from ray import cloudpickle

        seat = Seat(
            rank=rank,
            size=size,
            meeting=meeting,
            threads=threads,
            fetch=lambda handle: ray.get(handle.reference),
        )
        self._rank = rank
        self._held = cloudpickle.loads(begin)(seat)

    def ask(self, question: bytes, arguments: tuple[Any, ...]) -> Any:
        """Answer a question together with the others."""
        from ray import cloudpickle

        try:
            answer = cloudpickle.loads(question)(self._held, *arguments)
        except TheodoliteError as error:
            return Refused(error)
        return answer if self._rank == 0 else None
