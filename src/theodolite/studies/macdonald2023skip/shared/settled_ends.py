r"""Where descent tends as weights go to infinity, found in coordinates that end there.

Entries $a = \sin\theta$ and rows $b = u \sin|u|/|u|$ reach the faces of the cube and
the spheres, to which normalised weights only tend. A local infimum at infinity is then
a minimum at a finite place, to which descent with growing steps converges quickly.
"""

from typing import TYPE_CHECKING

from theodolite.studies.macdonald2023skip.shared.normalised_stack import (
    NormalisedStack,
    Weights,
)
from theodolite.studies.macdonald2023skip.shared.plain_descent import follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

_TINY = 1e-30


def settle(
    stack: NormalisedStack,
    cost: "Callable[[Tensor], Tensor]",
    weights: Weights,
    steps: int,
) -> tuple["Tensor", "Tensor"]:
    """Return the losses that weights settle at from here, and squared gradients."""
    import torch

    def loss(angles: Weights) -> "Tensor":
        first, *rest = angles
        return cost(stack.outputs_of([torch.sin(first), *map(_row, rest)]))

    first, *rest = stack.matrices(weights)
    angles = [torch.arcsin(first), *map(_angle, rest)]
    rates = torch.full((len(first),), 0.5, dtype=first.dtype)
    _, values, slopes = follow(loss, angles, rates, steps)
    return values, slopes


def _row(angle: "Tensor") -> "Tensor":
    import torch

    length = torch.sqrt(angle.square().sum(-1, keepdim=True) + _TINY)
    return angle * torch.sin(length) / length


def _angle(row: "Tensor") -> "Tensor":
    import torch

    length = torch.sqrt(row.square().sum(-1, keepdim=True) + _TINY)
    return row * torch.arcsin(length.clamp(max=1.0)) / length
