"""Networks of plain vectors, as other people write them."""

import torch
from torch import nn
from torch.nn import functional as F


class Highway(nn.Module):
    def __init__(self, width=5, depth=2):
        super().__init__()
        self.h = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.t = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for h, t in zip(self.h, self.t, strict=True):
            gate = torch.sigmoid(t(x))
            x = gate * torch.relu(h(x)) + (1 - gate) * x
        return x


class HighwayInOneTerm(Highway):
    """The same with one product, as x + t (h − x)."""

    def forward(self, x):
        for h, t in zip(self.h, self.t, strict=True):
            x = x + torch.sigmoid(t(x)) * (torch.relu(h(x)) - x)
        return x


class RevNet(nn.Module):
    """Additive coupling of two halves."""

    def __init__(self, width=6, depth=2):
        super().__init__()
        half = width // 2
        self.f = nn.ModuleList(
            nn.Sequential(nn.Linear(half, half), nn.ReLU()) for _ in range(depth)
        )
        self.g = nn.ModuleList(
            nn.Sequential(nn.Linear(half, half), nn.ReLU()) for _ in range(depth)
        )

    def forward(self, x):
        x1, x2 = torch.chunk(x, 2, dim=1)
        for f, g in zip(self.f, self.g, strict=True):
            x1 = x1 + f(x2)
            x2 = x2 + g(x1)
        return torch.cat([x1, x2], dim=1)


class ResNetOfResNets(nn.Module):
    """A long skip over blocks that end in sums themselves."""

    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Linear(width, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            for _ in range(2)
        )

    def forward(self, x):
        outer = x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return F.relu(x + outer)


class Scaled(nn.Module):
    """Branches behind factors of every make: ReZero, numbers, alpha, addcmul."""

    def __init__(self, width=4):
        super().__init__()
        self.rezero = nn.Parameter(torch.tensor(0.1))
        self.gamma = nn.Parameter(torch.full((width,), 0.1))
        self.delta = nn.Parameter(torch.full((width,), 0.2))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, x):
        x = x + self.rezero * F.relu(self.layers[0](x))
        x = x + 0.17 * F.relu(self.layers[1](x))
        x = torch.add(x, F.relu(self.layers[2](x)), alpha=0.5)
        x = torch.addcmul(x, self.gamma, F.relu(self.layers[3](x)))
        x = torch.addcmul(x, F.relu(self.layers[4](x)), self.delta)
        return x - F.relu(self.layers[5](x)) / 2


class ThreeBranches(nn.Module):
    """x + a + b + c, each from the same x."""

    def __init__(self, width=4):
        super().__init__()
        self.a, self.b, self.c = (
            nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(3)
        )

    def forward(self, x):
        return sum([x, self.a(x), self.b(x), self.c(x)])


class OnlyFunctions(nn.Module):
    """Raw parameters, functional operators, in-place sums; no submodule at all."""

    def __init__(self, width=4):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(width, width))
        self.w2 = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        h = x @ self.w1
        h += F.layer_norm(F.leaky_relu(h), h.shape[-1:]) @ self.w2
        h = torch.addmm(h, F.elu(h), self.w2)
        return F.layer_norm(h, h.shape[-1:])


class StochasticDepth(nn.Module):
    """Branches that noise switches off, one number a sample."""

    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        branch = F.dropout(F.relu(self.norm(self.layer(x))), 0.2, self.training)
        keep = x.new_empty(len(x), 1).bernoulli_(0.8).div_(0.8)
        return x + branch * keep
