"""Rows that findings read, on networks where the answer is known by construction."""

import torch
from torch import nn

from theodolite.anatomy.tensor_statistics import unit_counts
from theodolite.survey import survey


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
