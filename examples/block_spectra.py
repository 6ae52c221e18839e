"""Spectra of blocks.

A block passes signals unharmed when singular values of its Jacobian are near 1. Take
its skip away, and see what becomes of them.
"""

# %% A residual network, and a copy without skips
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from theodolite.data import load
from theodolite.instruments import singular_values


class Block(nn.Module):
    """A branch, with a skip or without."""

    def __init__(self, width: int, skip: float) -> None:
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(width), nn.Linear(width, width)
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to as much of the skip as there is."""
        return self.skip * x + self.linear(torch.relu(self.norm(x)))


def network(skip: float) -> nn.Sequential:
    """Return four blocks between two linear layers."""
    torch.manual_seed(0)
    blocks = (Block(16, skip) for _ in range(4))
    return nn.Sequential(nn.Linear(64, 16), *blocks, nn.Linear(16, 10)).double()


x = torch.tensor(load("digits").flat()[:32], dtype=torch.float64)

# %% Singular values of each block on this batch, samples coupled by the norms
figure = Figure(figsize=(8.0, 3.6), layout="constrained")
for skip, axes in zip((1.0, 0.0), figure.subplots(1, 2, sharey=True), strict=True):
    for block in ("1", "2", "3", "4"):
        spectrum = singular_values(network(skip), x, block=block, norm_mode="batch")
        values = np.asarray(spectrum.values)
        print(
            f"skip {skip:.0f}, block {block}: largest {values[0]:.3f}, median "
            f"{np.median(values):.3f}, rank {spectrum.rank} of {spectrum.size}"
        )
        axes.plot(values, label=f"block {block}")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set(xlabel="rank", yscale="log", ylim=(1e-3, None))
    axes.set_title("with skips" if skip else "without")
    axes.legend()
figure.savefig("block_spectra.png")
