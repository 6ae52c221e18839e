"""Diagonals against dense ones."""

import numpy as np
import pytest
import torch

from tests.cases import CASES
from tests.instruments.spectra import matrix_with, operator_with
from theodolite.core import Status
from theodolite.instruments import MatrixOperator, diagonal, hessian

DECAY = 3 * 0.9 ** np.arange(150)


@pytest.mark.parametrize("case", [*CASES[:2], *CASES[4:6]], ids=lambda c: c.name)
def test_models(case):
    model, batch, loss = case.make()
    exact = np.diag(hessian(model, batch, loss=loss, norm_mode="batch").matrix)
    dense = diagonal(model, batch, loss=loss, norm_mode="batch", method="dense")
    np.testing.assert_allclose(dense.diagonal, exact, rtol=1e-9, atol=1e-12)
    assert (dense.method, dense.status) == ("dense", Status.EXACT)
    found = diagonal(model, batch, loss=loss, norm_mode="batch", method="products")
    off = np.abs(found.diagonal - exact) / (found.diagonal_error + 1e-12)
    assert np.mean(off <= found.factor) > 0.85
    assert found.cost.passes == 60


def test_the_sketch_beats_plain_probes():
    found = diagonal(operator_with(DECAY), max_matvecs=60, method="products")
    matrix = matrix_with(DECAY)
    plain = np.sqrt(((matrix**2).sum(1) - np.diag(matrix) ** 2) / 60)
    assert np.median(found.diagonal_error / plain) < 0.6


def test_a_diagonal_matrix_needs_no_luck():
    matrix = torch.diag(torch.arange(1.0, 41.0).double())
    operator = MatrixOperator(matrix, symmetric=True)
    found = diagonal(operator, max_matvecs=30, method="products")
    np.testing.assert_array_less(
        np.abs(found.diagonal - np.arange(1, 41)), found.factor * found.diagonal_error
        + 5.0,
    )  # fmt: skip
    low_rank = operator_with(np.r_[3.0, -2.0, np.zeros(60)])
    exact = np.diag(low_rank._matrix.numpy())
    found = diagonal(low_rank, max_matvecs=30, method="products")
    np.testing.assert_allclose(found.diagonal, exact, atol=1e-13)


def test_the_precision_is_that_of_the_diagonal_not_of_its_noise():
    values = np.random.default_rng(0).normal(size=200)
    exact = np.diag(matrix_with(values))
    for seed in range(4):
        found = diagonal(
            operator_with(values), max_matvecs=60, method="products", seed=seed
        )
        true = np.linalg.norm(found.diagonal - exact) / np.linalg.norm(exact)
        assert true > 1.5  # so that the norm of the estimate is mostly noise
        assert 1 < found.precision < 2 * true
