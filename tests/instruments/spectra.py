"""Matrices with a spectrum that is known, as operators."""

import numpy as np
import torch

from theodolite.instruments import MatrixOperator, Operator


def matrix_with(eigenvalues, *, seed=0):
    """Return a symmetric matrix with these eigenvalues and random eigenvectors."""
    values = np.asarray(eigenvalues, dtype=np.float64)
    noise = np.random.default_rng(seed).normal(size=(len(values), len(values)))
    q = np.linalg.qr(noise)[0]
    found = (q * values) @ q.T
    return (found + found.T) / 2


def operator_with(eigenvalues, *, seed=0, dtype=torch.float64):
    matrix = torch.as_tensor(matrix_with(eigenvalues, seed=seed), dtype=dtype)
    return MatrixOperator(matrix, symmetric=True)


class Failing(Operator):
    """An operator whose products turn to NaN after some."""

    symmetric = True

    def __init__(self, inner, good):
        self.inner, self.good = inner, good
        self.shape, self.torch_dtype, self.device = (
            inner.shape,
            inner.torch_dtype,
            inner.device,
        )

    def product(self, vector):
        self.passes += 1
        found = self.inner.matvec(vector)
        return found if self.passes <= self.good else found * torch.nan


def smoothed(values, points, width, ends):
    """Return the density of eigenvalues with normal noise that both ends reflect."""
    low, high = ends

    def free(x):
        z = (x[:, None] - values) / width
        return np.exp(-(z**2) / 2).mean(1) / (width * np.sqrt(2 * np.pi))

    # Where noise may have come from that ends up at a point, reflected up to 5 times.
    total, left, right = free(points), points, points
    for turn in range(5):
        left = 2 * (low if turn % 2 == 0 else high) - left
        right = 2 * (high if turn % 2 == 0 else low) - right
        total = total + free(left) + free(right)
    return np.where((points >= low) & (points <= high), total, 0.0)
