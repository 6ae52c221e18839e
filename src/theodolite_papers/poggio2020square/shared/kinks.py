r"""Gates of ReLU units at their kinks, chosen so that a sum over samples closes.

A unit whose input is zero has every slope from 0 to 1 in its generalised gradient.
Where training slides along such kinks, no single gradient vanishes, and a mixture may.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from torch import Tensor


def sum_gaps(
    layers: "list[Tensor]",
    inputs: "list[Tensor]",
    gates: "list[Tensor]",
    shares: "Tensor",
) -> "list[Tensor]":
    r"""Return $V_k - \sum_n \alpha_n\,\partial f_n/\partial V_k$ with given gates.

    ``layers`` are the $V_k$, ``shares`` the $\alpha_n$, ``gates`` the slopes of hidden
    units. Inputs of each layer and gates have one column per sample.
    """
    import torch

    back = torch.ones((1, len(shares)), dtype=torch.float64)
    gaps = []
    for place in reversed(range(len(layers))):
        gaps.append(layers[place] - (back * shares) @ inputs[place].T)
        if place:
            back = gates[place - 1] * (layers[place].T @ back)
    return gaps[::-1]


def units_at_kinks(before: "list[Tensor]", *, reach: float) -> "list[Tensor]":
    """Return a mask of units whose input is below a share of their layer's mean length.

    Units that have vanished, those near zero for most samples, are left out.
    """
    near = [z.abs() < reach * z.norm(dim=0).mean() for z in before]
    return [kink & (kink.double().mean(dim=1, keepdim=True) < 0.5) for kink in near]


def least_sum_gaps(
    layers: "list[Tensor]",
    inputs: "list[Tensor]",
    shares: "Tensor",
    free: "list[Tensor]",
) -> list[float]:
    """Return the gaps of each layer for the best slopes, from 0 to 1, of some units.

    As ``sum_gaps``; ``free`` marks the units, by sample, whose slopes are chosen.
    """
    import torch

    before = [v @ b for v, b in zip(layers[:-1], inputs[:-1], strict=True)]
    gates = [(z > 0).double() for z in before]
    counts = [int(marked.sum()) for marked in free]

    def placed(chosen: "Tensor") -> "list[Tensor]":
        pieces = torch.split(chosen, counts)
        return [
            gate.masked_scatter(marked, piece)
            for gate, marked, piece in zip(gates, free, pieces, strict=True)
        ]

    def total(point: np.ndarray) -> tuple[float, np.ndarray]:
        chosen = torch.tensor(point, requires_grad=True)
        gaps = sum_gaps(layers, inputs, placed(chosen), shares)
        value = torch.stack([(gap**2).sum() for gap in gaps]).sum()
        return value.item(), torch.autograd.grad(value, chosen)[0].numpy()

    best = np.full(sum(counts), 0.5)
    if best.size:
        best = minimize(
            total, best, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * best.size
        ).x
    gaps = sum_gaps(layers, inputs, placed(torch.tensor(best)), shares)
    return [gap.norm().item() for gap in gaps]
