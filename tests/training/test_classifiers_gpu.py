"""On a CUDA device stacks of classifiers move as modules on the CPU do."""

import numpy as np
import pytest
import torch

from tests.training.test_classifiers import PLAN, train
from theodolite.training import ClassifierRecipe

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("family", ["dense", "convolutional"])
@pytest.mark.parametrize("norm", ["batch", "none"])
def test_graphs_of_stacks_do_what_modules_do(family, norm):
    plans = [
        PLAN.with_(family=family, norm=norm, start_norm=size) for size in (1.0, 4.0)
    ] * 2
    recipes = [
        ClassifierRecipe(epochs=3, batch_size=16, rate=0.05, weight_decay=decay)
        for decay in (0.0, 0.01)
    ] * 2
    seeds = [0, 0, 7, 7]
    there = train(plans, recipe=recipes, seeds=seeds, device="cuda")
    here = train(plans, recipe=recipes, seeds=seeds, way="plain")
    for one, other in zip(there, here, strict=True):
        for mine, theirs in zip(one.records, other.records, strict=True):
            np.testing.assert_allclose(mine.outputs, theirs.outputs, rtol=1e-8)
