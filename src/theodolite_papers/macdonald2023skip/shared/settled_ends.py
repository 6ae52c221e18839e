r"""Where descent tends as weights go to infinity, found in coordinates that end there.

Entries $a = \sin\theta$ and rows $b = u \sin|u|/|u|$ reach the faces of the cube and
the spheres, to which normalised weights only tend. A local infimum at infinity is then
a minimum at a finite place, to which descent with growing steps converges quickly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .normalised_stack import NormalisedStack, Weights
from .plain_descent import follow

if TYPE_CHECKING:
    from torch import Tensor

Cost = Callable[["Tensor"], "Tensor"]
_TINY = 1e-30


@dataclass(frozen=True)
class Settled:
    """Ends of networks: angles, losses there, and squared gradients that are left."""

    angles: list["Tensor"]
    losses: "Tensor"
    left: "Tensor"


def settle(
    stack: NormalisedStack,
    cost: Cost,
    weights: Weights,
    steps: int,
) -> Settled:
    """Let weights settle from where they are."""
    import torch

    first, *rest = stack.matrices(weights)
    angles = [torch.arcsin(first), *map(_angle, rest)]
    rates = torch.full((len(first),), 0.5, dtype=first.dtype)
    done = follow(lambda a: cost(stack.outputs_of(_matrices(a))), angles, rates, steps)
    return Settled(done.weights, done.losses, done.left)


def least_curvature(stack: NormalisedStack, cost: Cost, angles: Weights) -> float:
    """Return the least eigenvalue of one network's Hessian in its angles.

    Where it is positive at a place of rest, the loss is above its value there on a
    small sphere around, which descent by small steps does not cross.
    """
    import torch

    sizes = [part.numel() for part in angles]

    def loss(flat: "Tensor") -> "Tensor":
        parts = zip(flat.split(sizes), angles, strict=True)
        shaped = [part.view_as(like) for part, like in parts]
        return cost(stack.outputs_of(_matrices(shaped))).sum()

    flat = torch.cat([part.flatten() for part in angles])
    hessian = torch.autograd.functional.hessian(loss, flat)
    return float(torch.linalg.eigvalsh(hessian)[0])  # pyright: ignore


def _matrices(angles: Weights) -> list["Tensor"]:
    import torch

    first, *rest = angles
    return [torch.sin(first), *map(_row, rest)]


def _row(angle: "Tensor") -> "Tensor":
    import torch

    length = torch.sqrt(angle.square().sum(-1, keepdim=True) + _TINY)
    return angle * torch.sin(length) / length


def _angle(row: "Tensor") -> "Tensor":
    import torch

    length = torch.sqrt(row.square().sum(-1, keepdim=True) + _TINY)
    return row * torch.arcsin(length.clamp(max=1.0)) / length
