"""Gradient descent of many networks at once, and its limit at infinity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .normalised_stack import Loss, NormalisedStack, Weights

if TYPE_CHECKING:
    from torch import Tensor

# Growing steps lengthen by the one and shrink by the other.
_LONGER, _SHORTER = 1.2, 0.5


@dataclass(frozen=True)
class Descended:
    """Result of gradient descent: last weights, losses and notes at each mark."""

    weights: list["Tensor"]  # the last ones
    losses: list["Tensor"]  # by mark, one number per network
    # The largest rise of the loss in a step, below zero if it always fell.
    rise: "Tensor"
    noted: list["Tensor"]  # what ``note`` returned at each mark


@dataclass(frozen=True)
class Followed:
    """Final weights, losses, squared gradients, step sizes and time of ``follow``."""

    weights: list["Tensor"]
    losses: "Tensor"
    left: "Tensor"
    rates: "Tensor"
    time: "Tensor"


def descend(
    loss: Loss,
    weights: Weights,
    rates: "Tensor",
    marks: Sequence[int],
    note: Callable[[Weights], "Tensor"] | None = None,
) -> Descended:
    """Return the result of gradient descent; the last mark is the number of steps.

    The loss, and what ``note`` returns, are kept after as many steps as each mark says.
    There is a loss and a rate for each network.
    """
    import torch

    here = [w.clone() for w in weights]
    losses, noted = [], []
    rise, before = torch.full_like(rates, -torch.inf), None
    for step in range(marks[-1] + 1):
        values, slopes = _slopes(loss, here)
        rise = rise if before is None else torch.maximum(rise, values - before)
        before = values
        if step in marks:
            losses.append(values)
            noted += [] if note is None else [note(here)]
        if step < marks[-1]:
            here = _moved(here, slopes, rates)
    return Descended(here, losses, rise, noted)


def follow(loss: Loss, weights: Weights, rates: "Tensor", steps: int) -> Followed:
    """Return the result of gradient descent with a learning rate that adapts.

    A step counts if it lowers the loss by half of the linear prediction or more. The
    rate then grows; otherwise the step is undone and the rate shrinks.

    ``rates`` are the first steps of the networks; ``steps`` says how often to try one.
    """
    import torch

    here, rate, time = list(weights), rates.clone(), torch.zeros_like(rates)
    value, slopes = _slopes(loss, here)
    for _ in range(steps):
        there = _moved(here, slopes, rate)
        ahead, next_slopes = _slopes(loss, there)
        good = ahead <= value - 0.5 * rate * _square(slopes)
        here = [_where(good, new, old) for new, old in zip(there, here, strict=True)]
        slopes = [
            _where(good, new, old) for new, old in zip(next_slopes, slopes, strict=True)
        ]
        value = torch.where(good, ahead, value)
        time = time + torch.where(good, rate, 0.0)
        rate = torch.where(good, _LONGER * rate, _SHORTER * rate)
    return Followed(here, value, _square(slopes), rate, time)


def _slopes(loss: Loss, weights: Weights) -> tuple["Tensor", list["Tensor"]]:
    import torch

    leaves = [w.detach().requires_grad_() for w in weights]
    values = loss(leaves)
    return values.detach(), list(torch.autograd.grad(values.sum(), leaves))


def _moved(weights: Weights, slopes: Weights, rates: "Tensor") -> list["Tensor"]:
    by = rates[:, None, None]
    return [w - by * g for w, g in zip(weights, slopes, strict=True)]


def _where(good: "Tensor", new: "Tensor", old: "Tensor") -> "Tensor":
    import torch

    return torch.where(good[:, None, None], new, old)


def _square(slopes: Weights) -> "Tensor":
    return sum(
        (g.square().sum(dim=(1, 2)) for g in slopes[1:]),
        slopes[0].square().sum(dim=(1, 2)),
    )


Cost = Callable[["Tensor"], "Tensor"]
_TINY = 1e-30


@dataclass(frozen=True)
class Settled:
    """Ends of networks: angles, losses there, and squared gradients that are left."""

    angles: list["Tensor"]
    losses: "Tensor"
    left: "Tensor"


def settle(stack: NormalisedStack, cost: Cost, weights: Weights, steps: int) -> Settled:
    """Return where growing steps lead from given weights."""
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
