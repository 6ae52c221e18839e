"""Rows that findings read, on networks where the answer is known by construction."""

import pytest
import torch
from torch import nn

from theodolite.survey import survey
from theodolite.survey.measures.tensor_statistics import unit_counts


def rows(model, inputs, quantity, *, measures=("map", "signal", "units", "norms")):
    targets = torch.arange(len(inputs)) % 3
    result = survey(
        model,
        (inputs, targets),
        loss=nn.CrossEntropyLoss(),
        measures=measures,
        progress=False,
    )
    return result.find(quantity)


def test_twins_are_counted_and_dead_units_are_not_among_them():
    unlike = torch.randn(50, 4)
    columns = [
        unlike[:, 0],
        unlike[:, 1],
        unlike[:, 0],
        torch.zeros(50),
        torch.zeros(50),
    ]
    counts = unit_counts(torch.stack(columns, 1).relu(), "relu")
    assert counts.twins == 1
    assert counts.dead == 2
    assert unit_counts(unlike.relu(), "relu").twins == 0


def test_units_that_agree_on_two_samples_are_no_twins():
    few = torch.tensor([1.0, 0.0]).repeat(6, 1).T  # as batch norms of two leave them
    assert unit_counts(few, "relu").twins == 0
    assert unit_counts(few.repeat(4, 1), "relu").twins == 5


def test_twins_of_images_are_channels():
    images = torch.randn(3, 1, 5, 5)
    counts = unit_counts(images.expand(-1, 4, -1, -1).relu(), "relu")
    assert counts.twins == 3


def test_the_layer_before_an_activation_is_named():
    model = nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)
    )
    (row,) = rows(model, torch.randn(9, 4), "twin_share")
    assert row["layer"] == "0"


def test_blocks_that_keep_their_shape():
    model = nn.Sequential(
        nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)
    )
    kept = rows(model, torch.randn(5, 4), "keeps_shape")
    assert {row["block"]: row["value"] for row in kept} == {"0": 0, "2": 1, "4": 0}


class Skipping(nn.Module):
    """A layer whose outputs a norm reads, and perhaps a skip as well."""

    def __init__(self, skip):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6)
        self.head, self.skip = nn.Linear(6, 3), skip

    def forward(self, x):
        x = self.layer(x)
        branch = self.norm(x)
        return self.head(branch + x if self.skip else branch)


@pytest.mark.parametrize("skip", [False, True])
def test_a_skip_beside_a_norm_makes_the_size_of_weights_matter(skip):
    model = Skipping(skip)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    result = survey(
        model,
        (torch.randn(30, 4), torch.arange(30) % 3),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        measures=("map", "signal", "optimizer"),
        progress=False,
    )
    named = [row["module"] for row in result.find("decays_invariant")]
    assert named == ([] if skip else ["layer"])


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))


@pytest.fixture(scope="module")
def eight():
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(0))


def tangent(model, inputs, targets):
    """Survey the tangent kernel of a model."""
    given = {"loss": nn.MSELoss(), "measures": ("tangent",), "effort": 5000}
    return survey(model, (inputs, targets), **given)


class Tokens(nn.Module):
    """Four numbers a token, and more tokens to tell apart than these."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 4)
        self.branch = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.head = nn.Linear(4, 12)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        return self.head(hidden + self.branch(hidden))
