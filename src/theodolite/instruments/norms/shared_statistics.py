"""Batch statistics over the samples of several processes, in one graph per process."""

from typing import Any

import torch
from torch import Tensor

from ..differentiate.batch_norm_twice import NormCall
from ..differentiate.model_backward import own
from ..distributed.processes import Team


def sum_over(team: Team, tensor: Tensor) -> Tensor:
    """Return the sum over processes, differentiable any number of times.

    Each result depends on the inputs of all processes, so a cotangent is summed as
    well. All processes must therefore pull back together, through equal graphs.
    """
    return _Sum.apply(tensor, team) if team.several else tensor  # pyright: ignore[reportReturnType]


@own
class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(tensor: Tensor, team: Team) -> Tensor:
        return team.sum(tensor)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.team = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _Sum.apply(grads[0], ctx.team), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        return _Sum.apply(*args), in_dims[0]


# Types that are summed without conversion.
_SUMMED = (torch.float32, torch.float64)


class SharedStatistics:
    """Normalises by the moments of all processes, and differentiates through them.

    Sums are in float32 at least: half precision cannot count beyond some hundreds.

    Args:
        team: Processes whose samples count.

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
        # About the mean's own value, so that the variance does not cancel.
        squares = (x - centre.reshape(shape)).square().sum(axes)
        spread = sum_over(self._team, squares) / count
        out = call.by(mean, spread - (mean - centre).square())
        return out.to(call.x.dtype)
