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


def _trained_in(part: bool) -> Case:
    with seeded(52):
        model = _small()
    if part:
        model.requires_grad_(False)
        model[2].bias.requires_grad_(True)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(learned, lr=0.1)
    return Case(model=model, batches=clouds(), optimizer=optimizer)


def _with_labels(wrong: bool) -> Case:
    with seeded(53):
        model = _small()
    batches = clouds(n_batches=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    (inputs, labels), loss = batches[0], nn.CrossEntropyLoss()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model(inputs), labels).backward()
        optimizer.step()
    optimizer.zero_grad()
    if wrong:
        labels = labels.clone()
        labels[:WRONG] = (labels[:WRONG] + 1) % N_CLASSES
    return Case(model=model, batches=[(inputs, labels)], optimizer=optimizer)


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
