"""Pairs whose samples cannot be learned as they are given."""

import torch
from torch import nn

from tests.known_failures.cases import BatchList, Case, Pair
from tests.known_failures.layers import seeded
from tests.known_failures.samples import N_CLASSES, clouds

WIDTH = 24
# Of the features but one, of the samples with a wrong label, of steps until all fit.
TINY, WRONG, STEPS = 1e-4, 3, 200


def _small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU(), nn.Linear(WIDTH, N_CLASSES))


def _of_units(alike: bool) -> Case:
    scale = torch.full((16,), 1.0 if alike else TINY)
    scale[0] = 1.0
    batches: BatchList = [(x * scale, labels) for x, labels in clouds()]
    with seeded(51):
        return Case(model=_small(), batches=batches)


PAIRS = (
    Pair(
        name="features-of-unlike-units",
        illness="one input feature ten thousand times as large as the others",
        cure="features of one size",
        sick=lambda: _of_units(False),
        healthy=lambda: _of_units(True),
        expected=("inputs-unscaled",),
    ),
)
