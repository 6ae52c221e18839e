"""Several processes that each hold a part of the data: sums and other shared calls."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from theodolite.core import ConfigError, DistributedError, MeasurementError

from .exit_notice import first_line, raising_on_sigterm
from .heartbeat import Heartbeat, heartbeat_of, lost

# Polling intervals of a waiting process: short at first, then longer.
_FIRST_S, _LAST_S = 5e-5, 2e-2
# Entries that are hashed at a time, so that memory does not grow with the vector.
_STRETCH = 2**20

_ADVICE = "start all ranks again, once what ended it (often memory) is seen to"


class Team:
    """Sums over the processes of a group; with one process it changes nothing.

    Every process of the group makes the same calls in the same order, and gets the
    same numbers, bit for bit. When one of them is lost or fails, the others raise a
    :class:`DistributedError` within seconds, and so does every later call.

    Args:
        group: A process group, True for the default one, None for this process alone.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of processes.

    Example:
        >>> alone = Team()
        >>> alone.rank, alone.size, float(alone.sum(torch.tensor(2.0)))
        (0, 1, 2.0)
    """

    def __init__(self, group: Any = None) -> None:
        self.rank, self.size = 0, 1
        self._group = None
        self._device = torch.device("cpu")  # of tensors that are sent
        if group is None:
            return
        self._group = _default_group() if group is True else _checked(group)
        self.rank = dist.get_rank(self._group)
        self.size = dist.get_world_size(self._group)
        if self.several and dist.get_backend(self._group) == "nccl":
            self._device = torch.device("cuda", torch.cuda.current_device())
        if self.several:
            self._calls()  # starts the heartbeat: from now on a lost process is noticed

    @property
    def several(self) -> bool:
        """Whether there are other processes."""
        return self.size > 1

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over processes."""
        return self._reduced(tensor, dist.ReduceOp.SUM)

    def sum_(self, tensor: Tensor) -> Tensor:
        """Put the sum over processes into the tensor, and return it."""
        if not self.several:
            return tensor
        if self._moves(tensor) or not tensor.is_contiguous():
            return tensor.copy_(self.sum(tensor))
        self._call(dist.all_reduce, tensor, op=dist.ReduceOp.SUM)
        return tensor

    def largest(self, value: float) -> float:
        """Return the largest value of any process."""
        if not self.several:
            return float(value)
        values = torch.tensor(float(value), dtype=torch.float64, device="cpu")
        return float(self._reduced(values, dist.ReduceOp.MAX))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return one tensor per process, all of equal shape, in rank order."""
        if not self.several:
            return [tensor]
        here = self._moved(tensor).contiguous()
        parts = [torch.empty_like(here) for _ in range(self.size)]
        self._call(dist.all_gather, parts, here)
        return [part.to(tensor.device) for part in parts]

    def concatenate(self, rows: Tensor, counts: Sequence[int] | None = None) -> Tensor:
        """Return the rows of all processes, rank after rank; each may have any number.

        Args:
            rows: Those of this process.
            counts: Number of rows of each process, if known.
        """
        if not self.several:
            return rows
        counts = counts or [
            int(n) for n in self.gather(torch.tensor(len(rows), device="cpu"))
        ]
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows
        pairs = zip(self.gather(padded), counts, strict=True)
        return torch.cat([part[:count] for part, count in pairs])

    def broadcast(self, tensor: Tensor, *, source: int = 0) -> Tensor:
        """Return the tensor of one process; all know its shape and type."""
        if not self.several:
            return tensor
        sent = self._moved(tensor).contiguous()
        self._call(dist.broadcast, sent, group_src=source)
        return sent.to(tensor.device)

    def alike(self, mark: int) -> bool:
        """Return whether all processes gave the same integer."""
        if not self.several:
            return True
        marks = torch.tensor([mark, ~mark], dtype=torch.int64, device="cpu")
        high, low = self._reduced(marks, dist.ReduceOp.MAX).tolist()
        return high == ~low

    @contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """Notify the others if this process fails inside, so that none waits."""
        if not self.several:
            yield
            return
        with raising_on_sigterm(self.rank), self._calls().reporting_errors():
            yield

    def _calls(self) -> "CollectiveCalls":
        return CollectiveCalls(heartbeat_of(self._group, self.rank, self.size))

    def _call(self, call: Any, *args: Any, **options: Any) -> None:
        with raising_on_sigterm(self.rank):
            self._calls().run(
                lambda: call(*args, group=self._group, async_op=True, **options)
            )

    def _moves(self, tensor: Tensor) -> bool:
        return tensor.device != self._device

    def _moved(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._device, copy=True)

    def _reduced(self, tensor: Tensor, how: Any) -> Tensor:
        if not self.several:
            return tensor
        reduced = self._moved(tensor).contiguous()
        self._call(dist.all_reduce, reduced, op=how)
        return reduced.to(tensor.device)


def as_team(given: Any) -> Team:
    """Return the team for an argument: a team, a group, True or None."""
    return given if isinstance(given, Team) else Team(given)


def agreed(vector: Tensor, team: Team) -> Tensor:
    """Return the first rank's vector, after a check that all ranks have the same one.

    On different machines, vectors of the same problem may differ by rounding. A larger
    difference is an error.

    Raises:
        MeasurementError: If the vectors are different ones.
    """
    if not team.several or team.alike(_mark(vector)):
        return vector
    first = team.broadcast(vector)
    limit = torch.finfo(vector.dtype).eps ** 0.5 * float(first.norm())
    if team.largest(not float((vector - first).norm()) <= limit):
        raise MeasurementError(
            f"the {team.size} ranks multiply different vectors, wanted is one: draw it "
            "from the same seed on every rank, or send it from the first by "
            "team.broadcast(vector)"
        )
    return first


class CollectiveCalls:
    """Calls that all processes of a group make together; none waits for ever.

    Args:
        heartbeat: The group's heartbeat, which detects lost processes.
    """

    def __init__(self, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat

    def run(self, begin: Callable[[], Any]) -> None:
        """Begin a call and wait until it ends.

        Args:
            begin: Begins a collective operation of torch; returns its work.

        Raises:
            DistributedError: If a process is lost or fails meanwhile, or did so before.
        """
        heartbeat = self._heartbeat
        if heartbeat.broken is not None:
            raise DistributedError(heartbeat.broken)
        heartbeat.turn += 1
        heartbeat.waits_since = time.monotonic()
        try:
            work, pause = begin(), _FIRST_S
            while not work.is_completed():
                if (trouble := heartbeat.trouble()) is not None:
                    raise self._broken(trouble)
                time.sleep(pause)
                pause = min(1.5 * pause, _LAST_S)
            work.wait()
        except RuntimeError as error:
            raise self._broken(self._who(error)) from error

    @contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """Notify the others of an error that keeps this process from its next call.

        Of nested blocks only the innermost reports it, since an outer one may catch it.
        If all processes fail alike, each gives up one call, and they make the next one
        together again.
        """
        try:
            yield
        except DistributedError:
            raise
        except BaseException as error:
            if self._is_new(error):
                self._heartbeat.give_up(first_line(error))
            raise

    def _is_new(self, error: BaseException) -> bool:
        """Return whether the error was not reported yet; mark it as reported."""
        reported = vars(error).setdefault("_reported_to", [])
        new = id(self._heartbeat) not in reported
        reported.append(id(self._heartbeat))
        return new

    def _who(self, error: RuntimeError) -> str:
        """Return the rank that a broken connection lost, or else the error message."""
        size = self._heartbeat.size
        silent = self._heartbeat.silent()
        if (trouble := self._heartbeat.trouble()) is not None:
            return trouble
        if silent is None:
            return self._heartbeat.unanswered
        if silent:
            return lost(silent, size)
        said = first_line(error).split(". ")[0]
        return (
            f"a call that {size} ranks make together failed ({said}): see whether one "
            "of them ended, and start all again"
        )

    def _broken(self, reason: str) -> DistributedError:
        said = reason if ": " in reason else f"{reason}: {_ADVICE}"
        self._heartbeat.leave(said)
        return DistributedError(said)


def _checked(group: Any) -> Any:
    """Return a group that this process belongs to."""
    if dist.is_available() and isinstance(group, dist.ProcessGroup):
        if dist.get_rank(group) >= 0:
            return group
    elif not dist.is_available() or group != dist.GroupMember.NON_GROUP_MEMBER:
        raise ConfigError(
            f"team is {group!r}: pass a Team, True for all processes, a group that "
            "torch.distributed.new_group() made, or None for this process alone"
        )
    raise ConfigError(
        "this process does not belong to the group: measure only where new_group() "
        "gave one, or pass team=None to measure alone"
    )


def _default_group() -> Any:
    if not (dist.is_available() and dist.is_initialized()):
        raise ConfigError(
            "a team of all processes was asked for, and this one belongs to none: call "
            "torch.distributed.init_process_group() first, and start the script with "
            "torchrun"
        )
    return dist.group.WORLD


def _mark(vector: Tensor) -> int:
    """Return an integer hash of a vector's bits, to compare it between ranks."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = vector.contiguous().view(kinds[vector.element_size()])
    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for place, part in enumerate(bits.split(_STRETCH)):
        odd = torch.arange(1, 2 * len(part), 2, device=bits.device)
        total += (2 * place + 1) * (part.to(torch.int64) * odd).sum()
    return int(total)
