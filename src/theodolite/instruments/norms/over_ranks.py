"""Batch statistics over the samples of several processes, in one graph a process."""

import torch
from torch import Tensor

from theodolite.instruments.differentiate.over_ranks import sum_over
from theodolite.instruments.norms.batch_norm_calls import NormCall
from theodolite.instruments.team.processes import Team

# Types in which sums are taken as they are.
_SUMMED = (torch.float32, torch.float64)


class SharedStatistics:
    """Normalises by the moments of all processes, differentiated through.

    Sums are in float32 at least: coarser types do not count beyond some hundreds.

    Args:
        team: Those whose samples count.

    Attributes:
        coupled: Whether any call was part of a graph.
    """

    def __init__(self, team: Team) -> None:
        self._team, self.coupled = team, False

    def __call__(self, call: NormCall) -> Tensor:
        """Return the output of a call."""
        x = call.x if call.x.dtype in _SUMMED else call.x.float()
        self.coupled = self.coupled or x.requires_grad
        axes = [axis for axis in range(x.ndim) if axis != 1]
        shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
        own = x.new_tensor([x.numel() // x.shape[1]])
        sums = sum_over(self._team, torch.cat([x.sum(axes), own]))
        count = sums[-1].detach()
        mean = sums[:-1] / count
        centre = mean.detach()
        # About the mean's own number, so that the variance cancels nothing.
        squares = (x - centre.reshape(shape)).square().sum(axes)
        spread = sum_over(self._team, squares) / count
        found = call.by(mean, spread - (mean - centre).square())
        return found.to(call.x.dtype)
