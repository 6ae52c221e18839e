"""Several processes that hold a part of the data each."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from theodolite.core import ConfigError
from theodolite.instruments.team.ending import ending_in_a_sentence
from theodolite.instruments.team.waiting import Meeting
from theodolite.instruments.team.watch import watch_of


class Team:
    """Adds up over the processes of a group; alone, it changes nothing.

    Every process of the group makes the same calls in the same order, and gets the
    same numbers, bit for bit. Where one of them is lost, or fails, the others raise a
    :class:`TeamError` within seconds, and so does every later call.

    Args:
        group: A process group, True for the default one, None for this process alone.

    Attributes:
        rank: Place of this process among them, from 0.
        size: How many they are.

    Example:
        >>> alone = Team()
        >>> alone.rank, alone.size, float(alone.sum(torch.tensor(2.0)))
        (0, 1, 2.0)
    """

    def __init__(self, group: Any = None) -> None:
        self.rank, self.size = 0, 1
        self._group = None
        self._device = torch.device("cpu")  # of what is sent
        if group is None:
            return
        self._group = _default_group() if group is True else _checked(group)
        self.rank = dist.get_rank(self._group)
        self.size = dist.get_world_size(self._group)
        if self.several and dist.get_backend(self._group) == "nccl":
            self._device = torch.device("cuda", torch.cuda.current_device())
        if self.several:
            self._meeting()  # from now on a process that ends is missed

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
        self._meet(dist.all_reduce, tensor, op=dist.ReduceOp.SUM)
        return tensor

    def largest(self, value: float) -> float:
        """Return the largest value of any process."""
        found = torch.tensor(float(value), dtype=torch.float64)
        return float(self._reduced(found, dist.ReduceOp.MAX))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return a tensor of equal shape from each process, in one order."""
        if not self.several:
            return [tensor]
        here = self._moved(tensor).contiguous()
        found = [torch.empty_like(here) for _ in range(self.size)]
        self._meet(dist.all_gather, found, here)
        return [part.to(tensor.device) for part in found]

    def concatenate(self, rows: Tensor, counts: Sequence[int] | None = None) -> Tensor:
        """Return the rows of all processes, as many as each has, rank after rank.

        Args:
            rows: Those of this process.
            counts: How many each has, where that is known.
        """
        if not self.several:
            return rows
        counts = counts or [int(n) for n in self.gather(torch.tensor(len(rows)))]
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows
        pairs = zip(self.gather(padded), counts, strict=True)
        return torch.cat([part[:count] for part, count in pairs])

    def broadcast(self, tensor: Tensor, *, source: int = 0) -> Tensor:
        """Return the tensor of one process, whose shape and type all have."""
        if not self.several:
            return tensor
        found = self._moved(tensor).contiguous()
        self._meet(dist.broadcast, found, group_src=source)
        return found.to(tensor.device)

    def alike(self, mark: int) -> bool:
        """Say whether all processes gave the same whole number."""
        if not self.several:
            return True
        found = torch.tensor([mark, ~mark], dtype=torch.int64)
        high, low = self._reduced(found, dist.ReduceOp.MAX).tolist()
        return high == ~low

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Have the others told if this process fails inside, so that none waits."""
        if not self.several:
            yield
            return
        with ending_in_a_sentence(self.rank), self._meeting().telling():
            yield

    def _meeting(self) -> Meeting:
        return Meeting(watch_of(self._group, self.rank, self.size))

    def _meet(self, call: Any, *args: Any, **options: Any) -> None:
        with ending_in_a_sentence(self.rank):
            self._meeting().hold(
                lambda: call(*args, group=self._group, async_op=True, **options)
            )

    def _moves(self, tensor: Tensor) -> bool:
        return tensor.device != self._device

    def _moved(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._device, copy=True)

    def _reduced(self, tensor: Tensor, how: Any) -> Tensor:
        if not self.several:
            return tensor
        found = self._moved(tensor).contiguous()
        self._meet(dist.all_reduce, found, op=how)
        return found.to(tensor.device)


def as_team(given: Any) -> Team:
    """Return the team that a person means: a team, a group, True or None."""
    return given if isinstance(given, Team) else Team(given)


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
