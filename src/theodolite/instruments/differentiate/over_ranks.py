"""A sum over processes that derivatives pass through."""

from typing import Any

import torch
from torch import Tensor

from theodolite.instruments.team.processes import Team


def sum_over(team: Team, tensor: Tensor) -> Tensor:
    """Return the sum over processes, differentiated as often as wanted.

    What each of them gets depends on what all put in, so a cotangent that comes back is
    summed as well. All must therefore pull back together, through graphs alike.
    """
    return _Sum.apply(tensor, team) if team.several else tensor  # pyright: ignore[reportReturnType]


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
