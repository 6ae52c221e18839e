"""Many normalised residual networks of one shape in one batch, and their costs.

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
