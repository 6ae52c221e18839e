"""Pairs whose skips or branches are at fault."""

from torch import nn

from tests.known_failures.cases import Case, Pair
from tests.known_failures.layers import (
    Residual,
    he,
    seeded,
    tower,
    two_layers,
)
from tests.known_failures.samples import clouds

WIDTH = 24


def _of_scale(scale: float) -> Case:
    """Branches of a given factor, norms at their heads."""

    def block(_: int) -> nn.Module:
        return Residual(two_layers(WIDTH), scale=scale, before=nn.LayerNorm(WIDTH))

    with seeded(15):
        model = he(tower(block, 8, final=nn.LayerNorm(WIDTH)))
    return Case(model=model, batches=clouds())


def _summed_and_normed(scale: float) -> Case:
    """Branches of a given factor, norms behind the additions."""

    def block(_: int) -> nn.Module:
        return Residual(two_layers(WIDTH), scale=scale, behind=nn.LayerNorm(WIDTH))

    with seeded(14):
        model = he(tower(block, 8))
    return Case(model=model, batches=clouds())


def _of_length(length: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(length):
        layers += [nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _near_zero(length: int) -> Case:
    """Branches whose weights are all near zero, as the theory of skips has them."""
    with seeded(11):
        model = tower(lambda _: Residual(_of_length(length)), 6)
        for block in list(model)[1:-1]:
            for layer in block.modules():
                if isinstance(layer, nn.Linear):
                    nn.init.normal_(layer.weight, std=1e-2 / WIDTH**0.5)
    return Case(model=model, batches=clouds())


def _after_addition(post: bool) -> Case:
    def block(_: int) -> nn.Module:
        norm = nn.LayerNorm(WIDTH)
        if post:
            return Residual(two_layers(WIDTH), behind=norm)
        return Residual(two_layers(WIDTH), before=norm)

    with seeded(13):
        final = None if post else nn.LayerNorm(WIDTH)
        model = he(tower(block, 32, final=final))
    return Case(model=model, batches=clouds())


PAIRS = (
    Pair(
        name="norm-after-addition",
        illness="32 blocks whose norm stands behind the addition, on the skip's way",
        cure="the norm at the head of the branch",
        sick=lambda: _after_addition(True),
        healthy=lambda: _after_addition(False),
        expected=("norm-after-addition",),
        also=("dead-units",),
    ),
    Pair(
        name="three-shortcut-at-zero",
        illness="branches of three layers whose weights all start near zero",
        cure="branches of two layers from the same weights",
        sick=lambda: _near_zero(3),
        healthy=lambda: _near_zero(2),
        expected=("branches-stuck-at-zero",),
        also=("branches-asleep",),
        notes=("branches-asleep",),
    ),
    Pair(
        name="branches-drown-skips",
        illness="branches some twenty times as large as what the skips carry",
        cure="branches of half the factor that He's weights have",
        sick=lambda: _summed_and_normed(15.0),
        healthy=lambda: _summed_and_normed(0.4),
        expected=("branches-drown-skips",),
        also=("norm-after-addition",),
    ),
    Pair(
        name="sleeping-branches",
        illness="branches scaled by a millionth",
        cure="branches scaled by a fifth",
        sick=lambda: _of_scale(1e-6),
        healthy=lambda: _of_scale(0.2),
        expected=("branches-asleep",),
        also=("branches-stuck-at-zero",),
    ),
)
