"""Several processes that hold a part of the data each."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Team:
    """Adds up over the processes of a group; alone, it changes nothing.

    Args:
        group: A process group, True for the default one, None for this process alone.
    """

    def __init__(self, group: Any = None) -> None:
        self._group = None if group is True else group
        self._several = group is not None and dist.get_world_size(self._group) > 1

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over processes."""
        return self._reduced(tensor, dist.ReduceOp.SUM)

    def largest(self, value: float) -> float:
        """Return the largest value of any process."""
        found = torch.tensor(float(value), dtype=torch.float64)
        return float(self._reduced(found, dist.ReduceOp.MAX))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return a tensor of equal shape from each process, in one order."""
        if not self._several:
            return [tensor]
        found = [torch.empty_like(tensor) for _ in range(self._size())]
        dist.all_gather(found, tensor.contiguous(), group=self._group)
        return found

    def _size(self) -> int:
        return dist.get_world_size(self._group)

    def _reduced(self, tensor: Tensor, how: Any) -> Tensor:
        if not self._several:
            return tensor
        found = tensor.clone()
        dist.all_reduce(found, op=how, group=self._group)
        return found
