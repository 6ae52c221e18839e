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
        self.shape, self.dtype, self.device = inner.shape, inner.dtype, inner.device

    def matvec(self, vector):
        self.passes += 1
        found = self.inner.matvec(vector)
        return found if self.passes <= self.good else found * torch.nan
