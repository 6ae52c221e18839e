"""Actors that hold a part each and answer together, whatever becomes of some."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from theodolite.core import RunError, TeamError, TheodoliteError
from theodolite.runs.executors.ray.capacity import Capacity
from theodolite.runs.executors.ray.member import Handle, Member, Refused

# Members of nodes that died a moment ago never start; the others do within this time,
# or within the longer one where there is none yet.
_START_S, _PATIENCE_S = 20.0, 60.0
# Nodes go for reasons of their own; a question that loses so many is at fault itself.
_LOSSES = 8
_POLL_S = 1.0


class Crew:
    """Members on all places of a cluster, gathered anew when one is lost.

    Args:
        ray: The connected library.
        capacity: What fits.
        begin: Pickled; called with its seat in each member, returns what that holds.
        initialise: Pickled function that prepares a process.
        cpus: Processors a member.
        gpus: GPUs a member.
    """

    def __init__(
        self,
        ray: Any,
        capacity: Capacity,
        *,
        begin: bytes,
        initialise: bytes,
        cpus: float,
        gpus: float,
    ) -> None:
        self._ray, self._capacity, self._begin = ray, capacity, begin
        self._initialise, self._cpus, self._gpus = initialise, cpus, gpus
        self._members: list[Any] = []

    @property
    def size(self) -> int:
        """How many members there are, or will be."""
        return len(self._members) or max(1, self._capacity.slots())

    def put(self, value: Any) -> Handle:
        """Put something where every member can fetch it."""
        return Handle(self._ray.put(value))

    def ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Return the answer of all members, gathered anew until none is lost.

        Args:
            question: Called in each member, with what it holds and the arguments.
            arguments: Sent along; a :class:`Handle` arrives as it is.
        """
        from ray import cloudpickle

        asked = self._ray.put(cloudpickle.dumps(question))  # pyright: ignore[reportPrivateImportUsage]
        reason = ""
        for _ in range(_LOSSES):
            try:
                members = self._members or self._gather()
                answers = self._answers(members, asked, arguments)
            except self._lost_ones() as error:
                reason = str(error).strip().splitlines()[0]
                self.dismiss()
                continue
            refusals = [a.error for a in answers if isinstance(a, Refused)]
            if not refusals:
                return answers[0]
            reason = self._refused(refusals)
        raise RunError(
            f"members of a Ray crew were lost {_LOSSES} times at the same work "
            f"({reason.rstrip('. ')}): look at the memory of the nodes, or pass "
            "micro_batch=… for less at a time"
        )

    def dismiss(self) -> None:
        """Let all members go; the next question gathers others."""
        members, self._members = self._members, []
        for member in members:
            with suppress(Exception):
                self._ray.kill(member)

    def _refused(self, refusals: Sequence[TheodoliteError]) -> str:
        """Raise what a member said itself; return what was said of others."""
        own = [error for error in refusals if not isinstance(error, TeamError)]
        if len(own) < len(refusals):
            self.dismiss()  # those who wait for others in vain work no more
        if own:
            raise own[0]
        return str(refusals[0])

    def _answers(
        self, members: list[Any], asked: Any, arguments: tuple[Any, ...]
    ) -> list[Any]:
        """Wait for all; raises as soon as one is lost."""
        pending = [member.ask.remote(asked, arguments) for member in members]
        found: dict[Any, Any] = {}
        order = list(pending)
        while pending:
            ready, pending = self._ray.wait(pending, num_returns=1, timeout=_POLL_S)
            for reference in ready:
                found[reference] = self._ray.get(reference)
        return [found[reference] for reference in order]

    def _gather(self) -> list[Any]:
        """Start members on all places, and seat those that are there."""
        make = self._ray.remote(
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
        )(Member)
        wanted = max(1, self._capacity.slots())
        hired = [make.remote(self._initialise) for _ in range(wanted)]
        self._members = hired
        self._members = self._present(hired)
        size, threads = len(self._members), max(1, int(self._cpus))
        meeting = self._ray.get(self._members[0].meeting.remote())
        self._ray.get(
            [
                member.sit.remote(self._begin, rank, size, meeting, threads)
                for rank, member in enumerate(self._members)
            ]
        )
        return self._members

    def _present(self, hired: list[Any]) -> list[Any]:
        """Return the members that have started, and let the others go."""
        calls = {member.meeting.remote(): member for member in hired}
        ready, _ = self._ray.wait(list(calls), num_returns=len(calls), timeout=_START_S)
        begun = time.monotonic()
        while not ready and time.monotonic() - begun < _PATIENCE_S - _START_S:
            ready, _ = self._ray.wait(list(calls), num_returns=1, timeout=_POLL_S)
        there = [member for call, member in calls.items() if call in ready]
        for member in hired:
            if member not in there:
                self._ray.kill(member)
        if not there:
            self._members = []
            raise self._capacity.refusal("is left")
        return there

    def _lost_ones(self) -> tuple[type[Exception], ...]:
        wrong = self._ray.exceptions
        return (
            wrong.RayActorError,
            wrong.NodeDiedError,
            wrong.ObjectLostError,
            wrong.WorkerCrashedError,
        )
