"""Shared fixtures: everything is reseeded, nothing of the user's is read."""

import random

import numpy as np
import pytest
from hypothesis import settings

# The same examples every time; machines under load are not a failure.
settings.register_profile("theodolite", deadline=None, derandomize=True)
settings.load_profile("theodolite")


@pytest.fixture(autouse=True)
def reseed():
    """Start every test from the same random state."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 — the global state is what tests must not move
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
