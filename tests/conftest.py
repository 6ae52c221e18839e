"""Shared fixtures: everything is reseeded, nothing of the user's is read."""

import random

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The same examples every time; machines under load are not a failure.
settings.register_profile("theodolite", deadline=None, derandomize=True)
settings.load_profile("theodolite")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small matrices on a busy machine: more threads only wait for one another."""
    import torch

    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True)
def reseed():
    """Start every test from the same random state."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 — the global state is what tests must not move
    import torch

    torch.manual_seed(0)
