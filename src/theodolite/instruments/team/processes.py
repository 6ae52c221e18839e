"""Several processes that hold a part of the data each."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Team:
    """Adds up over the processes of a group; alone, it changes nothing.

    Every process of the group makes the same calls in the same order.

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
        self._group = None if group is True else group
        self.rank, self.size = 0, 1
        if group is not None:
            self.rank = dist.get_rank(self._group)
            self.size = dist.get_world_size(self._group)
        self._device: torch.device | None = None
        if self.several and dist.get_backend(self._group) == "nccl":
            self._device = torch.device("cuda", torch.cuda.current_device())

    @property
    def several(self) -> bool:
        """Whether there are other processes."""
        return self.size > 1

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over processes."""
        return self._reduced(tensor, dist.ReduceOp.SUM)

    def sum_(self, tensor: Tensor) -> Tensor:
        """Put the sum over processes into the tensor, and return it."""
        return tensor if not self.several else tensor.copy_(self.sum(tensor))

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
        dist.all_gather(found, here, group=self._group)
        return [part.to(tensor.device) for part in found]

    def broadcast(self, tensor: Tensor, *, source: int = 0) -> Tensor:
        """Return the tensor of one process, whose shape and type all have."""
        if not self.several:
            return tensor
        found = self._moved(tensor).contiguous()
        dist.broadcast(found, group=self._group, group_src=source)
        return found.to(tensor.device)

    def _moved(self, tensor: Tensor) -> Tensor:
        return tensor.clone() if self._device is None else tensor.to(self._device)

    def _reduced(self, tensor: Tensor, how: Any) -> Tensor:
        if not self.several:
            return tensor
        found = self._moved(tensor)
        dist.all_reduce(found, op=how, group=self._group)
        return found.to(tensor.device)
