"""Networks with a name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from torch import nn

from theodolite.core import (
    PreactivationBlueprint,
    ResnetBlueprint,
    TwoBlockBlueprint,
    UnknownNameError,
)
from theodolite.networks import build

from .imported import seeded
from .specs import FORMS
from .zoo_networks import ClassicResnet, PatchTransformer, TokenTransformer


@dataclass(frozen=True)
class Inhabitant:
    """A network of the zoo.

    Attributes:
        says: Its description in one line.
        make: Makes it from a seed.
        shape: Shape of a sample; empty if the model itself defines it.
    """

    says: str
    make: Callable[[int], nn.Module]
    shape: tuple[int, ...] = ()


def _drawn(kind: Callable[..., nn.Module], **settings: Any) -> Callable:
    """Return a function that builds a network with torch's own initialisation."""

    def make(seed: int) -> nn.Module:
        with seeded(seed):
            return kind(**settings)

    return make


def _blueprint(plan: Any) -> Callable[[int], nn.Module]:
    return lambda seed: build(plan, seed=seed)


_CIFAR, _GREY, _LARGE = (3, 32, 32), (1, 28, 28), (3, 64, 64)
_DEPTHS = (20, 32, 44, 56, 110)
_STAGES = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
}


def _resnets() -> Mapping[str, Inhabitant]:
    makers = {}
    for depth, (blocks, bottleneck) in _STAGES.items():
        kind = {"blocks": blocks, "bottleneck": bottleneck}
        makers[f"resnet{depth}"] = Inhabitant(
            f"ResNet-{depth} for large images, 1000 classes; a sample is 64×64 here",
            _drawn(ClassicResnet, **kind),
            _LARGE,
        )
        makers[f"cifar-resnet{depth}"] = Inhabitant(
            f"ResNet-{depth} with a small stem, for CIFAR-10",
            _drawn(ClassicResnet, **kind, large=False, classes=10),
            _CIFAR,
        )
    for depth in _DEPTHS:
        n = (depth - 2) // 6
        makers[f"resnet{depth}"] = Inhabitant(
            f"ResNet-{depth} of three narrow stages, for CIFAR-10",
            _drawn(ClassicResnet, blocks=(n,) * 3, large=False, width=16, classes=10),
            _CIFAR,
        )
    return makers


def _preactivation() -> Mapping[str, Inhabitant]:
    makers = {
        "preact-resnet18": Inhabitant(
            "PreAct-ResNet18 for CIFAR-10, with projections",
            _blueprint(ResnetBlueprint()),
            _CIFAR,
        ),
        "preact-resnet50": Inhabitant(
            "PreAct-ResNet50 for CIFAR-10, with bottlenecks",
            _blueprint(ResnetBlueprint(blocks=(3, 4, 6, 3), block="bottleneck")),
            _CIFAR,
        ),
    }
    for depth in _DEPTHS:
        plan = PreactivationBlueprint(depth=depth)
        makers[f"preact-resnet{depth}"] = Inhabitant(
            f"pre-activation network of depth {depth} for CIFAR-10, identity skips",
            _blueprint(plan),
            _CIFAR,
        )
        makers[f"plain{depth}"] = Inhabitant(
            f"the same of depth {depth} without skips",
            _blueprint(PreactivationBlueprint(depth=depth, skip=False)),
            _CIFAR,
        )
    return makers


def _others() -> Mapping[str, Inhabitant]:
    return {
        "mnist-chain": Inhabitant(
            "two blocks without skips, for MNIST",
            _blueprint(TwoBlockBlueprint(skips=False)),
            _GREY,
        ),
        "mnist-res": Inhabitant(
            "two blocks with skips, for MNIST",
            _blueprint(TwoBlockBlueprint()),
            _GREY,
        ),
        "mnist-resavg": Inhabitant(
            "two blocks with skips and an average added to them, for MNIST",
            _blueprint(TwoBlockBlueprint(added=1.0)),
            _GREY,
        ),
        "mlp": Inhabitant("three layers of 256 rectified units, for MNIST", _mlp),
        "vit-tiny": Inhabitant(
            "vision transformer of 12 blocks of width 192, for CIFAR-10",
            _drawn(PatchTransformer),
            _CIFAR,
        ),
        "gpt-tiny": Inhabitant(
            "decoder of 4 blocks of width 128 over bytes, norms in the branches",
            _drawn(TokenTransformer),
        ),
        "postnorm-tiny": Inhabitant(
            "the same with norms behind the sums",
            _drawn(TokenTransformer, norm_first=False),
        ),
    }


def _mlp(seed: int) -> nn.Module:
    with seeded(seed):
        widths = (784, 256, 256, 256)
        layers: list[nn.Module] = [nn.Flatten()]
        for into, out in pairwise(widths):
            layers += [nn.Linear(into, out), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], 10))


ZOO: dict[str, Inhabitant] = {**_resnets(), **_preactivation(), **_others()}


def inhabitant(name: str) -> Inhabitant:
    """Return a network of the zoo by name; case and dashes do not matter.

    Example:
        >>> inhabitant("PreAct_ResNet18").says
        'PreAct-ResNet18 for CIFAR-10, with projections'
    """
    plain = re.sub(r"[\s_]+", "-", name.strip().lower())
    for known, one in ZOO.items():
        if plain.replace("-", "") == known.replace("-", ""):
            return one
    near = get_close_matches(plain, ZOO, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UnknownNameError(f"unknown network {name!r}: {hint}pass {FORMS}")
