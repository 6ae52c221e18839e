"""What the gallery looks at: a small residual network on handwritten digits."""

from functools import cache

import torch
from torch import Tensor, nn

from theodolite.data import load

WIDTH, CLASSES = 8, 10
LOSS = nn.CrossEntropyLoss()


class Block(nn.Module):
    """A skip, and a branch of batch norm, ReLU and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to what came."""
        return x + self.linear(torch.relu(self.norm(x)))


def digits(count: int = 200) -> tuple[Tensor, Tensor]:
    """Return images as rows, and their classes."""
    dataset = load("digits")
    images = torch.tensor(dataset.flat()[:count], dtype=torch.float64)
    return images, torch.tensor(dataset.labels[:count]).long()


def network(depth: int = 4) -> nn.Sequential:
    """Return the network as it starts."""
    torch.manual_seed(0)
    blocks = [Block() for _ in range(depth)]
    layers = [nn.Linear(64, WIDTH), *blocks, nn.Linear(WIDTH, CLASSES)]
    return nn.Sequential(*layers).double()


@cache
def trained(steps: int = 60) -> nn.Sequential:
    """Return the network after some steps of gradient descent."""
    model, (x, y) = network(), digits()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        LOSS(model(x), y).backward()
        optimizer.step()
    return model
