"""The Lanczos process keeps its invariants, also across restarts."""

import numpy as np
import pytest
import torch

from tests.instruments.spectra import Failing, operator_with
from theodolite.core import MeasurementError, stream
from theodolite.instruments import MatrixOperator, extreme_eigenvalues
from theodolite.instruments.operators.vectors import normal_vector
from theodolite.instruments.solvers.lanczos import Krylov

# One outlier far out: without re-orthogonalisation it comes back as a ghost.
SPECTRUM = np.r_[1000.0, 50.0, np.linspace(-1, 1, 98)]


def grown(operator, steps, **settings):
    krylov = Krylov(operator, normal_vector(operator, stream(0)), **settings)
    while krylov.size < steps and not krylov.invariant:
        krylov.step()
    return krylov


def check_relation(krylov, operator, *, tol=1e-12):
    """Check that H V s = θ V s + coupling · pending, for every Ritz pair."""
    ritz = krylov.ritz()
    vectors = krylov.lift(ritz.vectors)
    for i, vector in enumerate(vectors):
        rest = operator.matvec(vector) - ritz.values[i] * vector
        foreseen = ritz.couplings[i] * krylov.pending
        assert float((rest - foreseen).norm()) < tol * 1000


def test_the_basis_is_orthonormal_and_the_relation_holds():
    operator = operator_with(SPECTRUM)
    krylov = grown(operator, 60, capacity=60)
    gram = krylov.basis @ krylov.basis.T
    torch.testing.assert_close(gram, torch.eye(60).double(), atol=1e-13, rtol=0)
    check_relation(krylov, operator)
    assert (krylov.ritz().values > 900).sum() == 1


def test_a_restart_keeps_the_relation_and_the_wanted():
    operator = operator_with(SPECTRUM)
    krylov = grown(operator, 20, capacity=20)
    before = krylov.ritz()
    krylov.restart(before, np.arange(12, 20))
    assert krylov.size == 8
    np.testing.assert_allclose(krylov.ritz().values, before.values[12:], rtol=1e-13)
    for _ in range(6):
        krylov.step()
    check_relation(krylov, operator)
    gram = krylov.basis @ krylov.basis.T
    torch.testing.assert_close(gram, torch.eye(14).double(), atol=1e-13, rtol=0)
    assert krylov.noise < 1e-11


def test_an_invariant_subspace_is_seen():
    values = torch.as_tensor(np.repeat([1.0, 2.0, 5.0], 7))
    operator = MatrixOperator(torch.diag(values), symmetric=True)
    krylov = grown(operator, 21, capacity=21)
    assert krylov.size == 3
    assert krylov.invariant
    assert krylov.nearly
    np.testing.assert_allclose(krylov.ritz().values, [1, 2, 5], rtol=1e-13)
    assert float(krylov.pending.norm()) == 0
    # With rounding in the matrix it is not quite invariant, which is seen as well.
    rough = grown(operator_with(values), 4, capacity=21)
    assert rough.nearly


def test_locked_vectors_are_kept_out():
    operator = operator_with(SPECTRUM)
    vectors = torch.linalg.eigh(operator._matrix).eigenvectors
    locked = vectors[:, -1:].T.contiguous()
    krylov = grown(operator, 30, capacity=30, locked=locked)
    assert float((krylov.basis @ locked.T).abs().max()) < 1e-14
    assert krylov.ritz().values[-1] == pytest.approx(50, rel=1e-12)
    assert krylov.ritz().leaks.max() < 1e-10


def test_a_product_that_fails_is_not_used():
    operator = Failing(operator_with(SPECTRUM), good=5)
    krylov = Krylov(operator, normal_vector(operator, stream(0)), capacity=10)
    while krylov.finite:
        krylov.step()
    assert krylov.size == 5
    assert np.isfinite(krylov.ritz().values).all()


def test_an_operator_that_is_not_symmetric_is_refused():
    matrix = torch.as_tensor(np.random.default_rng(0).normal(size=(20, 20)))
    operator = MatrixOperator(matrix, symmetric=True)
    with pytest.raises(MeasurementError, match="disagree with symmetry"):
        grown(operator, 10, capacity=10)


def test_float32_storage_costs_no_accuracy():
    exact = np.linalg.eigvalsh(
        operator_with(SPECTRUM, dtype=torch.float32)._matrix.double().numpy()
    )
    krylov = grown(operator_with(SPECTRUM, dtype=torch.float32), 40, capacity=40)
    found = krylov.ritz().values[-2:]
    np.testing.assert_allclose(found, exact[-2:], atol=1e-6 * 1000)
    gram = (krylov.basis @ krylov.basis.T).numpy()
    np.testing.assert_allclose(gram, np.eye(40), atol=3e-6)


@pytest.fixture
def deterministic():
    """Torch as studies use it, which fills memory that nobody wrote with NaN."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)


@pytest.mark.usefixtures("deterministic")
def test_no_memory_is_read_that_nobody_wrote():
    zero = MatrixOperator(torch.zeros(30, 30, dtype=torch.float64), symmetric=True)
    found = extreme_eigenvalues(zero, k=2, method="products")
    assert found.status.trusted
    assert np.isfinite(found.eigenvalues).all()
