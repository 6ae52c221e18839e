"""Pairs whose optimiser does not suit the network."""

import torch
from torch import nn

from tests.known_failures.cases import Case, Pair
from tests.known_failures.layers import (
    seeded,
)
from tests.known_failures.samples import N_CLASSES, clouds

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
