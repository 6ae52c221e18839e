"""What patients are made of: plain torch modules, as anybody would write them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

from tests.known_failures.seeds import seed_of


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw weights from a seed and leave the global state as found."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(seed))
        yield


class Residual(nn.Module):
    """A skip around a branch, with norms before, behind or nowhere.

    Args:
        branch: The branch.
        scale: Factor of the branch.
        before: Norm that the branch reads through.
        behind: Norm behind the addition.
        skip: What is on the skip; nothing by default.
    """

    def __init__(
        self,
        branch: nn.Module,
        *,
        scale: float = 1.0,
        before: nn.Module | None = None,
        behind: nn.Module | None = None,
        skip: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.branch = branch
        self.scale = scale
        self.before = before
        self.behind = behind
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to the skip."""
        inner = self.branch(x if self.before is None else self.before(x))
        inner = inner if self.scale == 1.0 else self.scale * inner
        out = (x if self.skip is None else self.skip(x)) + inner
        return out if self.behind is None else self.behind(out)


class Attention(nn.Module):
    """Self-attention of one head, written out so that it differentiates twice."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Mix the positions of a sequence."""
        query, key, value = self.mix(x).chunk(3, dim=-1)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return self.out(scores.softmax(-1) @ value)


class MeanOverPositions(nn.Module):
    """The mean over a sequence or an image, a number a channel."""

    def __init__(self, *axes: int) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        """Average over positions."""
        return x.mean(self.axes)


M = TypeVar("M", bound=nn.Module)


def he(module: M, gain: float = 1.0) -> M:
    """Draw all weights but the last layer's after He et al. (2015), biases zero."""
    layers = [m for m in module.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    for layer in layers[:-1]:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        with torch.no_grad():
            layer.weight.mul_(gain)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return module


def two_layers(width: int) -> nn.Sequential:
    """Two linear maps and a ReLU, the usual branch."""
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


def tower(
    blocks: Callable[[int], nn.Module],
    n_blocks: int,
    *,
    features: int = 16,
    width: int = 24,
    n_classes: int = 4,
    final: nn.Module | None = None,
) -> nn.Sequential:
    """A stem, blocks by their number, perhaps a norm, and a head."""
    layers: list[nn.Module] = [nn.Linear(features, width)]
    layers += [blocks(i) for i in range(n_blocks)]
    layers += [] if final is None else [final]
    return nn.Sequential(*layers, nn.Linear(width, n_classes))
