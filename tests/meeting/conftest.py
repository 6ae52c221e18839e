"""Shared data."""

import numpy as np
import pytest


@pytest.fixture
def tiny():
    """Three points in two dimensions with known singular values."""
    x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
    y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    return x, y
