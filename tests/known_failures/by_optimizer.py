"""Pairs whose optimiser does not suit the network."""

from collections.abc import Callable

import torch
from torch import nn

from tests.known_failures.cases import BatchList, Case, Pair
from tests.known_failures.layers import (
    Attention,
    MeanOverPositions,
    Residual,
    seeded,
    two_layers,
)
from tests.known_failures.samples import N_CLASSES, clouds, sequences
from tests.known_failures.seeds import seed_of

WIDTH = 16


def _small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU(), nn.Linear(WIDTH, N_CLASSES))


def _at_rate(rate: float) -> Case:
    with seeded(41):
        model = _small()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    return Case(model=model, batches=clouds(), optimizer=optimizer)


def _without_head(forgotten: bool) -> Case:
    with seeded(42):
        model = _small()
    learned = model[0].parameters() if forgotten else model.parameters()
    optimizer = torch.optim.SGD(learned, lr=0.1)
    return Case(model=model, batches=clouds(), optimizer=optimizer)


def _of_labels(at_random: bool) -> Case:
    with seeded(43):
        model = _small()
    batches: BatchList = clouds(16, n_batches=16)
    if at_random:
        generator = torch.Generator().manual_seed(seed_of(43))
        batches = [
            (x, torch.randint(N_CLASSES, labels.shape, generator=generator))
            for x, labels in batches
        ]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Case(model=model, batches=batches, optimizer=optimizer)


def _transformer(post: bool) -> Case:
    def around(branch: Callable[[int], nn.Module]) -> nn.Module:
        norm = nn.LayerNorm(WIDTH)
        if post:
            return Residual(branch(WIDTH), behind=norm)
        return Residual(branch(WIDTH), before=norm)

    with seeded(44):
        layers = [around(kind) for _ in range(12) for kind in (Attention, two_layers)]
        for weight in (p for layer in layers for p in layer.parameters()):
            if weight.ndim == 2:
                nn.init.xavier_uniform_(weight)
        final = [] if post else [nn.LayerNorm(WIDTH)]
        model = nn.Sequential(
            nn.Linear(WIDTH, WIDTH),
            *layers,
            *final,
            MeanOverPositions(1),
            nn.Linear(WIDTH, N_CLASSES),
        )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return Case(model=model, batches=sequences(), optimizer=optimizer)


PAIRS = (
    Pair(
        name="rate-too-large",
        illness="plain descent at a rate of 30",
        cure="a rate of 0.3",
        sick=lambda: _at_rate(30.0),
        healthy=lambda: _at_rate(0.3),
        expected=("rate-too-large",),
    ),
    Pair(
        name="parameters-not-in-the-optimizer",
        illness="an optimiser that was not given the head",
        cure="an optimiser of all parameters",
        sick=lambda: _without_head(True),
        healthy=lambda: _without_head(False),
        expected=("not-in-optimizer",),
    ),
)
