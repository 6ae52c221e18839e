"""Pairs whose signal goes astray with depth."""

from torch import nn

from tests.known_failures.cases import Case, Pair
from tests.known_failures.layers import Residual, he, seeded, tower, two_layers
from tests.known_failures.samples import clouds

WIDTH = 24


def _plain(norm: bool = False) -> nn.Sequential:
    """One layer of a plain network."""
    norms = [nn.BatchNorm1d(WIDTH)] if norm else []
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *norms, nn.ReLU())


def _without_norms() -> Case:
    with seeded(1):
        return Case(model=tower(lambda _: _plain(), 16), batches=clouds())


def _with_norms() -> Case:
    with seeded(1):
        model = tower(lambda _: _plain(norm=True), 16)
    return Case(model=model, batches=clouds())


def _summing_up(scale: float) -> Case:
    with seeded(2):
        model = he(tower(lambda _: Residual(two_layers(WIDTH), scale=scale), 20))
    return Case(model=model, batches=clouds())


def _shrinking(gain: float) -> Case:
    with seeded(3):
        model = he(tower(lambda _: _plain(), 6), gain=gain)
    return Case(model=model, batches=clouds())


def _normed_and_plain() -> Case:
    with seeded(4):
        model = he(tower(lambda _: _plain(norm=True), 50))
    return Case(model=model, batches=clouds())


def _normed_with_skips() -> Case:
    def block(_: int) -> nn.Module:
        branch = nn.Sequential(nn.BatchNorm1d(WIDTH), nn.ReLU(), two_layers(WIDTH))
        return Residual(branch)

    with seeded(4):
        model = he(tower(block, 25, final=nn.BatchNorm1d(WIDTH)))
    return Case(model=model, batches=clouds())


PAIRS = (
    Pair(
        name="missing-norm",
        illness="16 plain layers with torch's own weights and no norm",
        cure="a batch norm behind each layer",
        sick=_without_norms,
        healthy=_with_norms,
        expected=("gradient-vanishes",),
        also=("dead-units",),
    ),
    Pair(
        name="exploding-residual-sum",
        illness="20 branches as large as their skips, added up without a norm",
        cure="branches scaled by 0.15",
        sick=lambda: _summing_up(1.0),
        healthy=lambda: _summing_up(0.15),
        expected=("signal-explodes",),
        also=(
            "gradient-explodes",
            "dead-units",
        ),
    ),
    Pair(
        name="shrinking-signal",
        illness="weights of a quarter of He's size: each layer loses three quarters",
        cure="weights after He",
        sick=lambda: _shrinking(1 / 4),
        healthy=lambda: _shrinking(1.0),
        expected=("signal-vanishes", "gradient-vanishes"),
    ),
    Pair(
        name="deep-plain-with-batch-norm",
        illness="50 plain layers with batch norms, whose gradients grow layer by layer",
        cure="skips around every second layer",
        sick=_normed_and_plain,
        healthy=_normed_with_skips,
        expected=("gradient-explodes",),
    ),
)
