"""Many normalised residual networks of one shape in one batch, and their descent.

The first axis of every tensor counts networks. A network is the list of its weights:
those of the first layer, then an inner and an outer matrix per block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Weights = Sequence["Tensor"]
Loss = Callable[[Weights], "Tensor"]


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalisedStack:
    r"""$f_1 = \mathrm{en}(W) X$ and blocks $Z + s\,P_2\,\varphi(s\,P_1 Z)$."""

    inputs: "Tensor"  # networks or one, features, samples
    # ``"tanh"``, ``"ramp"`` or ``"bump"``; or pairs of one and the number of networks,
    # in their order, that have it.
    gate: str | tuple[tuple[str, int], ...] = "tanh"
    branch_norm: float = 0.9  # least upper bound of $\|sP\|$
    epsilon: float = 1.0  # of all normalisations
    skip: bool = True  # whether blocks have their skip

    def outputs(self, weights: Weights) -> "Tensor":
        """Return outputs: networks, features, samples."""
        return self.outputs_of(self.matrices(weights))

    def matrices(self, weights: Weights) -> list["Tensor"]:
        """Return the matrices that the weights parameterise, before branch scaling."""
        import torch

        first, *rest = weights
        eps = self.epsilon
        rows = [w * torch.rsqrt(eps + w.square().sum(-1, keepdim=True)) for w in rest]
        return [first * torch.rsqrt(eps + first.square()), *rows]

    def outputs_of(self, matrices: Weights) -> "Tensor":
        """Return outputs of a network with these matrices."""
        first, *rest = matrices
        z = first @ self.inputs
        for inner, outer in zip(rest[::2], rest[1::2], strict=True):
            down, up = (self.branch_norm / m.shape[-2] ** 0.5 for m in (inner, outer))
            branch = up * outer @ gated(self.gate, down * inner @ z)
            z = z + branch if self.skip else branch
        return z


def gated(gate: str | tuple[tuple[str, int], ...], z: "Tensor") -> "Tensor":
    """Apply a nonlinearity of slope at most 1 to every entry."""
    import torch

    if not isinstance(gate, str):
        parts = z.split([count for _, count in gate])
        return torch.cat(
            [gated(one, part) for (one, _), part in zip(gate, parts, strict=True)]
        )
    if gate == "tanh":
        return torch.tanh(z)
    if gate == "ramp":
        return 0.5 * z.clamp(0, 1).square() + (z - 1).clamp(min=0)
    # exp(-1/z) for positive z, which is below 1e-290 where it is cut; the inner choice
    # keeps the gradient of what is not chosen finite.
    seen = z > 1.5e-3
    inside = torch.where(seen, z, torch.ones_like(z))
    return torch.where(seen, torch.exp(-1 / inside), torch.zeros_like(z))


def cross_entropy(outputs: "Tensor", classes: "Tensor") -> "Tensor":
    """Return the mean over samples, one number per network."""
    import torch

    logs = torch.log_softmax(outputs, dim=1)
    return -logs.gather(1, classes.expand(len(outputs), 1, -1)).mean(dim=(1, 2))


def logistic(outputs: "Tensor") -> "Tensor":
    """Return the mean of log(1 + exp(-F)), one number per network."""
    from torch.nn import functional

    return functional.softplus(-outputs).mean(dim=(1, 2))


def square(outputs: "Tensor", targets: "Tensor") -> "Tensor":
    """Return the mean squared distance over samples, one number per network."""
    return (outputs - targets).square().sum(dim=1).mean(dim=1)


def least_kernel(stack: NormalisedStack, weights: Weights) -> "Tensor":
    r"""Return $\lambda(DF)$, the least eigenvalue of $DF\,DF^T$, one per network."""
    import torch

    leaves = [w.detach().requires_grad_() for w in weights]
    flat = stack.outputs(leaves).flatten(1)
    rows = []
    for place in range(flat.shape[1]):
        pulled = torch.autograd.grad(
            flat[:, place].sum(), leaves, retain_graph=True, materialize_grads=True
        )
        rows.append(torch.cat([g.flatten(1) for g in pulled], dim=1))
    jacobian = torch.stack(rows, dim=1)
    return torch.linalg.svdvals(jacobian)[:, -1].square()


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
