"""Residual networks of several styles, small enough to enumerate all their paths.

Every branch ends in a :class:`Tap`, which returns what it gets and which an oracle can
turn down; instruments know nothing of it.
"""

import torch
from torch import nn
from torch.nn import functional


class Tap(nn.Module):
    """Multiplies by a number, unless that is None."""

    def __init__(self):
        super().__init__()
        self.level = None

    def forward(self, x):
        return x if self.level is None else x * self.level


class PreActivation(nn.Module):
    """Norm, ReLU and weights twice in the branch; nothing after the sum."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.linear1, self.linear2 = nn.Linear(width, width), nn.Linear(width, width)
        self.relu1, self.relu2, self.tap = nn.ReLU(), nn.ReLU(inplace=True), Tap()

    def forward(self, x):
        inner = self.linear1(self.relu1(self.norm1(x)))
        return x + self.tap(self.linear2(self.relu2(self.norm2(inner))))


class PostActivation(nn.Module):
    """The block of the first ResNets: an in-place sum, then a ReLU."""

    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.relu1, self.relu2 = nn.ReLU(inplace=True), nn.ReLU(inplace=True)
        self.tap, self.project = Tap(), None
        if inside != outside or stride != 1:
            self.project = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False),
                nn.BatchNorm2d(outside),
            )

    def forward(self, x):
        out = self.relu1(self.norm1(self.conv1(x)))
        out = self.tap(self.norm2(self.conv2(out)))
        out += x if self.project is None else self.project(x)
        return self.relu2(out)


class Bottleneck(nn.Module):
    """Narrow in the middle, with slopes on both sides of zero."""

    def __init__(self, width):
        super().__init__()
        self.down = nn.Conv2d(width, 2, 1)
        self.middle = nn.Conv2d(2, 2, 3, padding=1)
        self.up = nn.Conv2d(2, width, 1)
        self.act1, self.act2, self.tap = nn.LeakyReLU(0.2), nn.ReLU(), Tap()

    def forward(self, x):
        return torch.add(
            self.tap(self.up(self.act2(self.middle(self.act1(self.down(x)))))), x
        )


class Nested(nn.Module):
    """A residual block inside of a branch."""

    def __init__(self, width):
        super().__init__()
        self.enter, self.inner = nn.Linear(width, width), nn.Linear(width, width)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.tap1, self.tap2 = Tap(), Tap()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.norm(self.relu1(self.enter(x)))
        y = y + self.tap1(self.relu2(self.inner(y)))
        return x + self.tap2(y)


class Parallel(nn.Module):
    """Two branches beside one skip."""

    def __init__(self, width):
        super().__init__()
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)
        self.relu1, self.relu2 = nn.ReLU(), nn.LeakyReLU(0.1)
        self.tap1, self.tap2 = Tap(), Tap()

    def forward(self, x):
        left, right = self.relu1(self.left(x)), self.relu2(self.right(x))
        return x + self.tap1(left) + self.tap2(right)


class Fused(nn.Module):
    """Additions inside of calls that multiply as well, and a difference."""

    def __init__(self, width):
        super().__init__()
        self.inner, self.gain = nn.Linear(width, width), nn.Parameter(torch.rand(width))
        self.outer = nn.Linear(width, width, bias=False)
        self.relu1, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()
        self.tap1, self.tap2, self.tap3 = Tap(), Tap(), Tap()

    def forward(self, x):
        x = torch.addcmul(x, self.tap1(self.relu1(self.inner(x))), self.gain, value=2)
        x = torch.addmm(x, self.tap2(self.relu2(x)), self.outer.weight)
        return x - self.tap3(self.relu3(self.inner(x)))


class Image(nn.Module):
    """A stem with max-pooling, blocks, and an average before the last layer."""

    def __init__(self, *blocks, width):
        super().__init__()
        self.stem, self.relu = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()
        self.pool = nn.MaxPool2d(2, return_indices=False)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(width, 3)

    def forward(self, x):
        x = self.blocks(self.pool(self.relu(self.stem(x))))
        return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def _flat(*blocks):
    return nn.Sequential(nn.Linear(3, 5), *blocks, nn.Linear(5, 2))


def _images():
    return torch.randn(6, 3, 8, 8, dtype=torch.float64)


def _vectors():
    return torch.randn(6, 3, dtype=torch.float64)


# Name, network, inputs, whether batch norm is in it.
STYLES = {
    "pre-activation": (lambda: _flat(*(PreActivation(5) for _ in range(4))), _vectors),
    "post-activation": (
        lambda: Image(
            PostActivation(4, 4), PostActivation(4, 6, 2), PostActivation(6, 6), width=6
        ),
        _images,
    ),
    "bottleneck": (lambda: Image(*(Bottleneck(4) for _ in range(4)), width=4), _images),
    "nested": (lambda: _flat(Nested(5), Nested(5)), _vectors),
    "fused": (lambda: _flat(Fused(5)), _vectors),
    "parallel": (lambda: _flat(Parallel(5), Parallel(5)), _vectors),
}


def make(style):
    """Return a network of a style, and inputs for it; norms are not at their start."""
    torch.manual_seed(1)
    build, inputs = STYLES[style]
    net = build().double()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.3)
            nn.init.normal_(module.running_mean, std=0.2)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return net, inputs()
