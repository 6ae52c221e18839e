"""Pairs whose normalisation is used where it cannot work."""

import torch
from torch import nn

from tests.known_failures.cases import BatchList, Case, Pair
from tests.known_failures.layers import seeded
from tests.known_failures.samples import clouds

WIDTH = 24


def _normed() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(16, WIDTH),
        nn.BatchNorm1d(WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.BatchNorm1d(WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, 4),
    )


def _of_batch(size: int) -> Case:
    with seeded(31):
        model = _normed()
    batches = clouds(size, n_batches=max(2, 64 // size))
    _settle(model, clouds(64))
    return Case(model=model, batches=batches)


def _settle(model: nn.Module, batches: BatchList, shift: float = 0.0) -> None:
    """Let running statistics follow the batches, as some epochs would."""
    model.train()
    with torch.no_grad():
        for _ in range(30):
            for inputs, _labels in batches:
                model(inputs + shift)


def _frozen(still: bool) -> Case:
    with seeded(33):
        model = _normed()
    _settle(model, clouds())
    for layer in list(model)[:3]:
        layer.requires_grad_(False)
        layer.train(not still)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(learned, lr=0.01)
    return Case(model=model, batches=clouds(), optimizer=optimizer)


PAIRS = (
    Pair(
        name="batch-norm-of-one",
        illness="batch norms over one sample, which has no variance",
        cure="batches of 32",
        sick=lambda: _of_batch(1),
        healthy=lambda: _of_batch(32),
        expected=("batch-norm-of-one",),
    ),
    Pair(
        name="batch-norm-of-two",
        illness="batch norms over two samples, whose variances are mostly noise",
        cure="batches of 32",
        sick=lambda: _of_batch(2),
        healthy=lambda: _of_batch(32),
        expected=("batch-norm-of-few",),
    ),
    Pair(
        name="frozen-in-train-mode",
        illness="a frozen block whose batch norm still follows every batch",
        cure="the frozen block in eval mode",
        sick=lambda: _frozen(False),
        healthy=lambda: _frozen(True),
        expected=("frozen-norm-follows-batches",),
    ),
)
