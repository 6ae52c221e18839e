"""Networks of common kinds, as they are usually started and trained."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tests.known_failures.cases import BatchList, Case, Standard
from tests.known_failures.layers import (
    Attention,
    MeanOverPositions,
    Residual,
    seeded,
    two_layers,
)
from tests.known_failures.samples import (
    N_CLASSES,
    clouds,
    pictures,
    sentences,
    sequences,
)

WIDTH = 16


class _Basic(nn.Module):
    """The basic block of He et al. (2016): two convolutions, ReLU behind the sum."""

    def __init__(self, inner: int, outer: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.down = None
        if stride > 1 or inner != outer:
            convolution = nn.Conv2d(inner, outer, 1, stride, bias=False)
            self.down = nn.Sequential(convolution, nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to the skip."""
        out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (out + (x if self.down is None else self.down(x))).relu()


class _Preactivated(nn.Module):
    """The pre-activation block of He et al. (2016b)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to the skip."""
        out = self.conv1(self.bn1(x).relu())
        return x + self.conv2(self.bn2(out).relu())


class _Words(nn.Module):
    """A small language model's body: words, positions, pre-norm blocks, a head."""

    def __init__(self, words: int, length: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(length, WIDTH))
        self.blocks = nn.Sequential(*_pre_norm(3, nn.GELU))
        self.final = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, N_CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return scores of classes."""
        x = self.blocks(self.words(tokens) + self.places)
        return self.head(self.final(x).mean(1))


def _pre_norm(n_layers: int, activation: type[nn.Module]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for _ in range(n_layers):
        wide = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), activation(), nn.Linear(2 * WIDTH, WIDTH)
        )
        layers.append(Residual(Attention(WIDTH), before=nn.LayerNorm(WIDTH)))
        layers.append(Residual(wide, before=nn.LayerNorm(WIDTH)))
    return layers


def _of(
    model: nn.Module, batches: BatchList, *, adam: bool = False, rate: float = 0.05
) -> Case:
    """Dress a model in train mode with the optimiser that its kind is trained by."""
    if adam:
        moved: torch.optim.Optimizer = torch.optim.AdamW(
            model.parameters(), lr=1e-3, weight_decay=0.01
        )
    else:
        moved = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    return Case(model=model, batches=batches, optimizer=moved)


def _perceptron() -> Case:
    layers = [nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()]
    return _of(nn.Sequential(*layers, nn.Linear(32, N_CLASSES)), clouds())


def _tanh() -> Case:
    layers = [nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh()]
    return _of(nn.Sequential(*layers, nn.Linear(32, N_CLASSES)), clouds())


def _lenet() -> Case:
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 12, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(12 * 16, 32),
        nn.ReLU(),
        nn.Linear(32, N_CLASSES),
    )
    return _of(model, pictures())


def _vgg() -> Case:
    layers: list[nn.Module] = []
    channels = 3
    for outer in (8, 8, 12, 12):
        layers += [nn.Conv2d(channels, outer, 3, padding=1), nn.BatchNorm2d(outer)]
        layers += [nn.ReLU()]
        channels = outer
    layers += [nn.AvgPool2d(4), nn.Flatten(), nn.Linear(4 * 12, N_CLASSES)]
    return _of(nn.Sequential(*layers), pictures())


def _resnet() -> Case:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        _Basic(8, 8),
        _Basic(8, 12, 2),
        _Basic(12, 12),
        MeanOverPositions(2, 3),
        nn.Linear(12, N_CLASSES),
    )
    return _of(model, pictures())


def _preactivated() -> Case:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        *[_Preactivated(8) for _ in range(6)],
        nn.BatchNorm2d(8),
        nn.ReLU(),
        MeanOverPositions(2, 3),
        nn.Linear(8, N_CLASSES),
    )
    return _of(model, pictures())


def _convnext() -> Case:
    def block(channels: int) -> nn.Module:
        branch = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
            nn.GroupNorm(1, channels),
            nn.Conv2d(channels, 4 * channels, 1),
            nn.GELU(),
            nn.Conv2d(4 * channels, channels, 1),
        )
        return Residual(branch)

    model = nn.Sequential(
        nn.Conv2d(3, 8, 2, stride=2),
        nn.GroupNorm(1, 8),
        *[block(8) for _ in range(4)],
        MeanOverPositions(2, 3),
        nn.LayerNorm(8),
        nn.Linear(8, N_CLASSES),
    )
    return _of(model, pictures(), adam=True)


def _vision_transformer() -> Case:
    model = nn.Sequential(
        nn.Linear(WIDTH, WIDTH),
        *_pre_norm(4, nn.GELU),
        nn.LayerNorm(WIDTH),
        MeanOverPositions(1),
        nn.Linear(WIDTH, N_CLASSES),
    )
    return _of(model, sequences(), adam=True)


def _language_model() -> Case:
    return _of(_Words(12, 6), sentences(), adam=True)


def _residual_perceptron() -> Case:
    model = nn.Sequential(
        nn.Linear(16, WIDTH),
        *[Residual(two_layers(WIDTH), before=nn.LayerNorm(WIDTH)) for _ in range(8)],
        nn.LayerNorm(WIDTH),
        nn.Linear(WIDTH, N_CLASSES),
    )
    return _of(model, clouds(), adam=True)


def _autoencoder() -> Case:
    batches = [(x, x) for x, _ in clouds()]
    model = nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8), nn.Linear(8, 16)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Case(model=model, batches=batches, loss=nn.MSELoss(), optimizer=optimizer)


def _standard(
    name: str, make: Callable[[], Case], notes: tuple[str, ...] = ()
) -> Standard:
    """Return a standard network whose weights are always the same."""

    def made() -> Case:
        with seeded(7):
            return make()

    return Standard(name=name, make=made, notes=notes)


STANDARDS: tuple[Standard, ...] = (
    _standard("perceptron", _perceptron),
    _standard("tanh-perceptron", _tanh),
    _standard("lenet", _lenet),
    _standard("vgg-bn", _vgg),
    _standard("resnet", _resnet),
    _standard("preact-resnet", _preactivated),
    _standard("convnext", _convnext),
    _standard("vision-transformer", _vision_transformer),
    _standard("language-model", _language_model),
    _standard("residual-perceptron", _residual_perceptron),
    _standard("autoencoder", _autoencoder),
)
