"""The networks that curvature is measured on, and their data."""

import torch
from torch import Tensor, nn

from theodolite.data import load

Data = tuple[Tensor, Tensor]


class Residual(nn.Module):
    """Two convolutions with batch norm, and the identity beside them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's outputs."""
        branch = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(branch)))


class Tied(nn.Module):
    """Embed tokens, mix channels, and read out by the weights of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Embedding(50, 16), nn.Linear(16, 16)
        self.read = nn.Linear(16, 50, bias=False)
        self.read.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each token."""
        return self.read(torch.tanh(self.mix(self.embed(tokens))))


def residual_net(channels: int, width: int, blocks: int, classes: int) -> nn.Module:
    """Return a stem, blocks of one width, mean pooling and a linear head."""
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        *[Residual(width) for _ in range(blocks)],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, classes),
    )


def small_case() -> tuple[nn.Module, Data]:
    """Return a float64 net of 399 parameters in train mode, and 16 samples.

    Its running statistics are those of no data, as after a few steps of training, or
    after a change of the data.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = residual_net(channels=2, width=4, blocks=1, classes=3).double()
        x = torch.randn(16, 2, 6, 6, dtype=torch.float64)
        y = torch.arange(16) % 3
        for norm in norms(model):
            norm.running_mean.normal_(0.0, 0.3)
            norm.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, 0.0, 0.2)
    return model.train(), (x, y)


def digits(samples: int) -> Data:
    """Return standardised digits, float32, the classes in turn."""
    data = load("mnist5k")
    order = torch.tensor(data.labels).argsort(stable=True)
    order = order.reshape(10, -1).T.reshape(-1)[:samples]
    x = torch.tensor(data.inputs)[order].float()[:, None] / 255
    return (x - 0.13) / 0.31, torch.tensor(data.labels)[order].long()


def nine_convolutions(samples: int = 64, steps: int = 30) -> tuple[nn.Module, Data]:
    """Return a 9-convolution net of 19,034 parameters, and a batch of digits.

    The weights are those of initialisation; other digits have gone through in train
    mode, so that running statistics are near those of the data.
    """
    x, y = digits(samples + 64 * steps)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = residual_net(channels=1, width=16, blocks=4, classes=10)
    with torch.no_grad():
        for part in x[samples:].split(64):
            model(part)
    return model, (x[:samples], y[:samples])


def norms(model: nn.Module) -> list[nn.BatchNorm2d]:
    """List the batch norms in order."""
    return [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
