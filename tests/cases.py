"""One table of small models: every instrument is tried on every case.

Each case is a builder of (model, batch, loss) in float64, with running statistics of
its norms moved away from those of the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from theodolite.core import NormMode, ShortcutBlueprint
from theodolite.instruments import HalfSquareLoss
from theodolite.networks import build


class Residual(nn.Module):
    """x + branch(x)."""

    def __init__(self, *branch):
        super().__init__()
        self.branch = nn.Sequential(*branch)

    def forward(self, x):
        return x + self.branch(x)


class Tied(nn.Module):
    """One matrix used twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(torch.tanh(self.layer(x)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNN(2, 3, batch_first=True)
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.mix = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        z = self.norm(x)
        return self.head((x + self.mix(z, z, z, need_weights=True)[0]).mean(1))


def conv_block(norm, channels=2):
    return Residual(
        nn.Conv2d(channels, channels, 3, padding=1),
        norm(channels),
        nn.Tanh(),
        nn.Conv2d(channels, channels, 3, padding=1),
        norm(channels),
    )


def head():
    """Three classes from two channels of 4×4, with few parameters."""
    return nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 3)


def conv_net(norm):
    return nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), conv_block(norm), *head())


def pre_activation_net():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1),
        Residual(nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 2, 3, padding=1)),
        nn.BatchNorm2d(2),
        nn.ReLU(),
        *head(),
    )


def layer_norm_net():
    return nn.Sequential(
        nn.Linear(4, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 3, bias=False)
    )


def in_place_net():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.BatchNorm2d(2),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


@dataclass(frozen=True)
class Case:
    name: str
    model: Callable[[], nn.Module]
    shape: tuple[int, ...]
    norm: str = "none"
    # False where torch's own double backward is wrong (weight norm, torch 2.13): only
    # finite differences judge there.
    double_backward: bool = True

    def make(self, *, dtype=torch.float64, samples=6):
        """Return a model, a batch and a loss, the same every time."""
        generator = torch.Generator().manual_seed(7)
        model = self.model().to(dtype)
        with torch.no_grad():
            for tensor in [*model.parameters(), *model.buffers()]:
                if tensor.is_floating_point():
                    noise = torch.randn(
                        tensor.shape, generator=generator, dtype=torch.float64
                    )
                    tensor.copy_((0.4 * noise).to(dtype))
            for name, buffer in model.named_buffers():
                if name.endswith("running_var"):
                    buffer.abs_().add_(0.5)
        inputs = torch.randn(
            samples, *self.shape, generator=generator, dtype=torch.float64
        )
        targets = torch.randint(0, 3, (samples,), generator=generator)
        return model, (inputs.to(dtype), targets), nn.CrossEntropyLoss()


CASES = [
    Case(
        "mlp", lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)), (4,)
    ),
    Case("conv_bn_resnet", lambda: conv_net(nn.BatchNorm2d), (1, 4, 4), norm="batch"),
    Case("pre_activation_resnet", pre_activation_net, (1, 4, 4), norm="batch"),
    Case("group_norm", lambda: conv_net(lambda c: nn.GroupNorm(1, c)), (1, 4, 4)),
    Case("layer_norm", layer_norm_net, (4,)),
    Case("in_place_relu", in_place_net, (1, 4, 4), norm="batch"),
    Case("attention", Attention, (3, 4)),
    Case(
        "weight_norm",
        lambda: nn.Sequential(
            nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)),
            nn.Tanh(),
            nn.Linear(5, 3),
        ),
        (4,),
        double_backward=False,
    ),
    Case("recurrent", Recurrent, (3, 2)),
    Case("shared_weights", Tied, (3,)),
]


def modes_of(case, place):
    """Return all norm modes for a model with batch norms, for others two by turns.

    To these, modes are names.
    """
    modes = list(NormMode)
    if case.norm == "batch":
        return modes
    return [modes[(2 * place + more) % len(modes)] for more in range(2)]


in_modes = pytest.mark.parametrize(
    ("case", "mode"),
    [
        pytest.param(case, mode, id=f"{case.name}-{mode}")
        for place, case in enumerate(CASES)
        for mode in modes_of(case, place)
    ],
)


def shortcut_case(**fields):
    """Return a shortcut network at random weights with a regression batch."""
    plan = ShortcutBlueprint(**{"width": 3, "depth": 4, "init": "xavier", **fields})
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(8, plan.width, generator=generator, dtype=torch.float64)
    targets = torch.randn(8, plan.width, generator=generator, dtype=torch.float64)
    return build(plan, seed=1), (inputs, targets), HalfSquareLoss()
