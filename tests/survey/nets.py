"""Tiny networks whose measures can be checked by hand."""

import torch
from torch import nn


class Functional(nn.Module):
    """Residual additions that no module wraps, without norms; smooth."""

    def __init__(self, depth=3, width=4):
        super().__init__()
        self.stem = nn.Linear(3, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x)

    def by_hand(self, x):
        """Return what leaves the stem, each block and the head, and the branches."""
        ends, branches = [self.stem(x)], []
        for layer in self.layers:
            branches.append(torch.tanh(layer(ends[-1])))
            ends.append(ends[-1] + branches[-1])
        return [*ends, self.head(ends[-1])], branches


class NormedBlock(nn.Module):
    """A branch with a norm behind its first layer."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        return x + self.second(torch.relu(self.norm(self.first(x))))


class Normed(nn.Module):
    """Two residual blocks with batch norms."""

    def __init__(self, width=4, classes=3):
        super().__init__()
        self.stem = nn.Linear(3, width)
        self.blocks = nn.ModuleList(NormedBlock(width) for _ in range(2))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def data(samples=16, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, 3, generator=generator, dtype=torch.float64)
    return x, torch.arange(samples) % 3


def functional(**settings):
    torch.manual_seed(0)
    return Functional(**settings).double()


def normed():
    torch.manual_seed(0)
    return Normed().double()
