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
        self._device: torch.device | None = None
        if self._several and dist.get_backend(self._group) == "nccl":
            self._device = torch.device("cuda", torch.cuda.current_device())

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
        here = self._moved(tensor).contiguous()
        size = dist.get_world_size(self._group)
        found = [torch.empty_like(here) for _ in range(size)]
        dist.all_gather(found, here, group=self._group)
        return [part.to(tensor.device) for part in found]

    def _moved(self, tensor: Tensor) -> Tensor:
        return tensor.clone() if self._device is None else tensor.to(self._device)

    def _reduced(self, tensor: Tensor, how: Any) -> Tensor:
        if not self._several:
            return tensor
        found = self._moved(tensor)
        dist.all_reduce(found, op=how, group=self._group)
        return found.to(tensor.device)
