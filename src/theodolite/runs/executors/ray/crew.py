"""Actors that hold a part each and answer together, whatever becomes of some."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from theodolite.core import RunError, TeamError, TheodoliteError
from theodolite.runs.executors.ray.capacity import Capacity
from theodolite.runs.executors.ray.flight import cannot_work
from theodolite.runs.executors.ray.member import Handle, Member, Refused
from theodolite.runs.executors.ray.sending import as_raised, stored

# Members of nodes that died a moment ago never start. The others are waited for until
# there are as many as places, or so long.
_START_S = 60.0
# Nodes go for reasons of their own; a question that loses so many is at fault itself.
_LOSSES = 8
# Once one is lost the others notice, and come back without an answer, when they have
# computed what they have begun. Who does not is replaced as well, after so long, or so
# many times what the longest answer took.
_RETURN_S, _RETURN_TIMES = 20.0, 3
_POLL_S = 1.0


@dataclass(frozen=True)
class Lost:
    """A member that will not answer any more, and why."""

    reason: str


class Crew:
    """Members on all places of a cluster, of which those that are lost are replaced.

    Args:
        ray: The connected library.
        capacity: What fits.
        begin: Pickled; called with its seat in each member, returns what that holds.
            Where others were replaced, what has a method ``move`` is called with the
            seat that it has from then on; else ``begin`` is, again.
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
        # By rank; None where one was lost. None of them answers until all are seated.
        self._members: list[Any] = []
        self._seated = self._closed = False
        self._longest_s = 0.0  # that an answer took so far

    @property
    def size(self) -> int:
        """How many members there are, or will be."""
        self._check_open()
        return len(self._there) if self._seated else max(1, self._capacity.slots())

    @property
    def _there(self) -> list[Any]:
        return [member for member in self._members if member is not None]

    def put(self, value: Any) -> Handle:
        """Put something where every member can fetch it."""
        self._check_open()
        return Handle(stored(self._ray, value))

    def ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Return the answer of all members, asked again until none is lost.

        Args:
            question: Called in each member, with what it holds and the arguments.
            arguments: Sent along; a :class:`Handle` arrives as it is.
        """
        from ray import cloudpickle

        self._check_open()
        asked = self._ray.put(cloudpickle.dumps(question))  # pyright: ignore[reportPrivateImportUsage]
        reason = ""
        for _ in range(_LOSSES):
            try:
                if not self._seated:
                    self._gather()
                begun = time.monotonic()
                answers = self._waited(
                    [member.ask.remote(asked, arguments) for member in self._members]
                )
            except (*self._lost_ones(), TeamError) as error:
                reason = str(error).strip().splitlines()[0]
                self.dismiss()
                continue
            except BaseException:
                self.dismiss()  # not all of them may have been seated, or asked
                raise
            refusals = [a.error for a in answers if isinstance(a, Refused)]
            if lost := [answer for answer in answers if isinstance(answer, Lost)]:
                self._replace(answers)
            elif not refusals:
                self._longest_s = max(self._longest_s, time.monotonic() - begun)
                return answers[0]
            said = self._refused(refusals)  # which may have ended those that are lost
            reason = lost[0].reason if lost else said
        raise RunError(
            f"members of a Ray crew were lost {_LOSSES} times at the same work "
            f"({reason.rstrip('. ')}): look at the memory of the nodes and at the "
            "network between them, or pass micro_batch=… for less at a time"
        )

    def dismiss(self) -> None:
        """Let all members go; the next question gathers others."""
        members, self._members, self._seated = self._there, [], False
        for member in members:
            self._end(member)

    def close(self) -> None:
        """Let all members go, and gather no others."""
        self.dismiss()
        self._closed = True

    def _check_open(self) -> None:
        """Refuse without a cluster: Ray would start one by itself when it is used."""
        if self._closed or not self._ray.is_initialized():
            raise RunError(
                "the Ray cluster of this crew is closed, so no product can be made "
                "there: make the operator, and use it, within `with RayCluster(…)`"
            )

    def _end(self, member: Any) -> None:
        with suppress(Exception):
            self._ray.kill(member)

    def _replace(self, answers: Sequence[Any]) -> None:
        """Let the lost go; the others stay, and are seated anew."""
        for rank, answer in enumerate(answers):
            if isinstance(answer, Lost):
                self._end(self._members[rank])
                self._members[rank] = None
        self._seated = False

    def _refused(self, refusals: Sequence[TheodoliteError]) -> str:
        """Raise what a member said itself; return what was said of others."""
        own = [error for error in refusals if not isinstance(error, TeamError)]
        if len(own) < len(refusals):
            self._seated = False  # those who waited in vain must meet again
        if own:
            raise own[0]
        return str(refusals[0]) if refusals else ""

    def _waited(self, calls: list[Any]) -> list[Any]:
        """Wait for all; once one is lost, for so long only."""
        patience = max(_RETURN_S, _RETURN_TIMES * self._longest_s)
        found, pending, end = dict[Any, Any](), list(calls), float("inf")
        while pending and time.monotonic() < end:
            ready, pending = self._ray.wait(pending, num_returns=1, timeout=_POLL_S)
            for reference in ready:
                found[reference] = answer = self._answer(reference)
                alone = isinstance(answer, Refused) and isinstance(
                    answer.error, TeamError
                )
                if isinstance(answer, Lost) or alone:
                    end = min(end, time.monotonic() + patience)
        missing = Lost("it did not come back when another was lost")
        return [found.get(reference, missing) for reference in calls]

    def _answer(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._lost_ones() as error:
            return Lost(str(error).strip().splitlines()[0])
        except self._ray.exceptions.RayError as error:
            raise as_raised(self._ray, error) from error

    def _gather(self) -> None:
        """Start members on all places that are free, and seat all that are there."""
        make = self._ray.remote(
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
        )(Member)
        wanted = max(1, self._capacity.slots()) - len(self._there)
        hired = [make.remote(self._initialise) for _ in range(wanted)]
        new = iter(self._present(hired))
        # Who is new takes the seat of one that was lost, and so the share.
        filled = [next(new, None) if m is None else m for m in self._members]
        self._members = [m for m in (*filled, *new) if m is not None]
        size, threads = len(self._members), max(1, int(self._cpus))
        meeting = self._ray.get(self._members[0].meeting.remote())
        seated = self._waited(
            [
                member.sit.remote(rank, size, meeting, threads)
                for rank, member in enumerate(self._members)
            ]
        )
        if lost := [answer for answer in seated if isinstance(answer, Lost)]:
            raise TeamError(lost[0].reason)
        refusals = [a.error for a in seated if isinstance(a, Refused)]
        if refusals:  # who has a reason of its own kept the others waiting
            raise min(refusals, key=lambda error: isinstance(error, TeamError))
        self._seated = True

    def _present(self, hired: list[Any]) -> list[Any]:
        """Return the new members that have got ready, and let the others go."""
        calls = {member.prepare.remote(self._begin): member for member in hired}
        end, ready, before = time.monotonic() + _START_S, [], len(self._there)
        while len(ready) < len(calls) and time.monotonic() < end:
            ready, _ = self._ray.wait(
                list(calls), num_returns=len(calls), timeout=_POLL_S
            )
            there = before + len(ready)
            if there and there >= self._capacity.slots():
                break
        there = [member for call, member in calls.items() if call in ready]
        for member in hired:
            if member not in there:
                self._end(member)
        if not there and not before:
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
        )
