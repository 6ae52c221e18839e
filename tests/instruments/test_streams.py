"""Data is read as it is needed, the same every time, and no more than asked for."""

import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.instruments.agreement import near
from theodolite.core import MeasurementError
from theodolite.instruments import (
    GaussNewton,
    HalfSquareLoss,
    Hessian,
    Jacobian,
    by_block,
    hessian,
    read_batches,
    trace,
)

X = torch.linspace(-1, 1, 72, dtype=torch.float64).sin().reshape(24, 3)
Y = X.square()
ONES = torch.ones(12, dtype=torch.float64)
HALF = {"loss": HalfSquareLoss()}


class Watched(Dataset):
    """Notes which of its batches are alive."""

    def __init__(self, noise=None):
        self.alive, self.most, self.read, self.noise = [], 0, 0, noise

    def __len__(self):
        return len(X)

    def __getitem__(self, place):
        noise = self.noise() if self.noise else 0.0
        return X[place] + noise, Y[place]

    def collate(self, samples):
        found = [torch.stack(column) for column in zip(*samples, strict=True)]
        self.alive.append(weakref.ref(found[0]))
        self.read += 1
        self.most = max(self.most, sum(ref() is not None for ref in self.alive))
        return found


def loader_of(data, **settings):
    return DataLoader(data, batch_size=3, collate_fn=data.collate, **settings)


def model():
    torch.manual_seed(0)
    return nn.Linear(3, 3, dtype=torch.float64)


KINDS = {
    "hessian": lambda m, d, **s: Hessian(m, d, **HALF, **s),
    "gauss_newton": lambda m, d, **s: GaussNewton(m, d, **HALF, **s),
    "jacobian": Jacobian,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("micro_batch", [2, 3])
def test_a_loader_is_never_in_memory_as_a_whole(kind, micro_batch):
    data = Watched()
    settings = {"norm_mode": "eval", "micro_batch": micro_batch}
    operator = KINDS[kind](model(), loader_of(data), **settings)
    found = operator @ ONES
    assert data.most <= 3
    near(found, KINDS[kind](model(), (X, Y), norm_mode="eval") @ ONES)
    assert operator.partition == (3,) * 8


def test_graphs_that_fit_are_kept_and_the_loader_left_alone():
    data = Watched()
    operator = Hessian(model(), loader_of(data), **HALF, norm_mode="eval")
    operator @ ONES
    read = data.read
    operator @ ONES
    assert data.read == read


@pytest.mark.parametrize("own", [False, True])
def test_a_loader_that_shuffles_gives_the_same_batches_every_time(own):
    generator = torch.Generator().manual_seed(3) if own else None
    data = Watched(noise=lambda: 0.1 * torch.rand(3, dtype=torch.float64))
    loader = loader_of(data, shuffle=True, generator=generator)
    network = nn.Sequential(nn.BatchNorm1d(3), model()).double()
    before = torch.get_rng_state()
    inside = generator.get_state() if generator else None
    batches = read_batches(loader)
    kept = [[part.clone() for part in batch] for batch in batches]
    settings = {**HALF, "norm_mode": "batch", "micro_batch": 2}
    operator = Hessian(network, batches, **settings)
    vector = torch.linspace(0, 1, operator.shape[0], dtype=torch.float64)
    first = operator @ vector
    near(operator @ vector, first)
    near(Hessian(network, kept, **settings) @ vector, first)
    assert torch.equal(torch.get_rng_state(), before)
    assert generator is None or torch.equal(generator.get_state(), inside)


def test_data_that_changes_is_refused():
    drawn = np.random.default_rng(0)
    data = Watched(noise=lambda: float(drawn.random()))
    with pytest.raises(MeasurementError, match="read again"):
        Hessian(
            model(), loader_of(data), **HALF, norm_mode="eval", micro_batch=3
        ) @ ONES


@pytest.mark.parametrize("given", ["loader", "list"])
def test_no_more_batches_are_taken_than_asked_for(given):
    data = Watched()
    batches = loader_of(data) if given == "loader" else list(loader_of(data))
    data.read = 0
    settings = {**HALF, "norm_mode": "eval", "max_batches": 2}
    found = hessian(model(), batches, **settings)
    assert found.partition == (3, 3)
    wanted = hessian(model(), (X[:6], Y[:6]), **HALF, norm_mode="eval")
    near(found.matrix, wanted.matrix)
    if given == "loader":
        assert data.read % 2 == 0
    blocks = by_block(trace, model(), batches, per="parameter", **settings)
    assert blocks.stack("trace").sum() == pytest.approx(np.trace(wanted.matrix))
    with pytest.raises(MeasurementError, match="max_batches is 0"):
        Hessian(model(), batches, **HALF, norm_mode="eval", max_batches=0)


def test_a_plain_loader_of_tensors():
    loader = DataLoader(TensorDataset(X, Y), batch_size=5)
    batches = read_batches(loader)
    assert len(batches) == 5
    assert [len(batch[0]) for batch in batches] == [5, 5, 5, 5, 4]
    assert torch.equal(batches[-1][0], X[20:])
    assert torch.equal(batches[1][0], X[5:10])
