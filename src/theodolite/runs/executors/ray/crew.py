"""Actors that hold a part each and answer together, whatever becomes of some."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from theodolite.core import RunError, TeamError, TheodoliteError
from theodolite.runs.executors.ray.capacity import Capacity
from theodolite.runs.executors.ray.flight import cannot_work
from theodolite.runs.executors.ray.member import Handle, Member, Refused

# Members of nodes that died a moment ago never start. The others are waited for until
# there are as many as places, or so long.
_START_S = 60.0
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
            except BaseException:
                self.dismiss()  # not all of them may have been seated, or asked
                raise
            refusals = [a.error for a in answers if isinstance(a, Refused)]
            if not refusals:
                return answers[0]
            reason = self._refused(refusals)
        raise RunError(
            f"members of a Ray crew were lost {_LOSSES} times at the same work "
            f"({reason.rstrip('. ')}): look at the memory of the nodes and at the "
            "network between them, or pass micro_batch=… for less at a time"
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
        return self._waited([m.ask.remote(asked, arguments) for m in members])

    def _waited(self, calls: list[Any]) -> list[Any]:
        found, pending = dict[Any, Any](), list(calls)
        while pending:
            ready, pending = self._ray.wait(pending, num_returns=1, timeout=_POLL_S)
            for reference in ready:
                found[reference] = self._ray.get(reference)
        return [found[reference] for reference in calls]

    def _gather(self) -> list[Any]:
        """Start members on all places, and seat those that are there."""
        make = self._ray.remote(
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
        )(Member)
        wanted = max(1, self._capacity.slots())
        self._members = [make.remote(self._initialise) for _ in range(wanted)]
        self._members = self._present(self._members)
        size, threads = len(self._members), max(1, int(self._cpus))
        meeting = self._ray.get(self._members[0].meeting.remote())
        seated = self._waited(
            [
                member.sit.remote(rank, size, meeting, threads)
                for rank, member in enumerate(self._members)
            ]
        )
        refusals = [a.error for a in seated if isinstance(a, Refused)]
        if refusals:  # who has a reason of its own kept the others waiting
            raise min(refusals, key=lambda error: isinstance(error, TeamError))
        return self._members

    def _present(self, hired: list[Any]) -> list[Any]:
        """Return the members that have got ready, and let the others go."""
        calls = {member.prepare.remote(self._begin): member for member in hired}
        end, ready = time.monotonic() + _START_S, []
        while len(ready) < len(calls) and time.monotonic() < end:
            ready, _ = self._ray.wait(
                list(calls), num_returns=len(calls), timeout=_POLL_S
            )
            if ready and len(ready) >= self._capacity.slots():
                break
        there = [member for call, member in calls.items() if call in ready]
        for member in hired:
            if member not in there:
                self._ray.kill(member)
        if not there:
            raise self._capacity.refusal("is left")
        for reason in self._ray.get(ready):
            if reason is not None:
                raise cannot_work(reason)
        return there

    def _lost_ones(self) -> tuple[type[Exception], ...]:
        wrong = self._ray.exceptions
        return (
            wrong.RayActorError,
            wrong.NodeDiedError,
            wrong.ObjectLostError,
            wrong.WorkerCrashedError,
            TeamError,
        )
