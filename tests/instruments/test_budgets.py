"""What was asked for is what is spent: products, and memory."""

import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.instruments.spectra import operator_with
from theodolite.core import MeasurementError
from theodolite.instruments import (
    HalfSquareLoss,
    Operator,
    by_block,
    condition,
    diagonal,
    extreme_eigenvalues,
    index,
    memory_forecast,
    spectral_density,
    trace,
)

VALUES = np.linspace(-1, 3, 112)
CALLS = {
    "trace": (lambda o: trace(o, max_matvecs=10), 10),
    "diagonal": (lambda o: diagonal(o, max_matvecs=10), 10),
    "extremes": (lambda o: extreme_eigenvalues(o, max_matvecs=10), 10),
    "density": (lambda o: spectral_density(o, n_probes=2, steps=5), 10),
    "index": (lambda o: index(o, n_probes=2, steps=5), 10),
    "condition": (
        lambda o: condition(o, n_probes=2, steps=5, max_matvecs=10),
        20,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_more_products_are_spent_than_allowed(name):
    call, allowed = CALLS[name]
    found = call(operator_with(VALUES))
    assert found.cost.passes <= allowed
    assert not found.method.startswith("dense")


@pytest.mark.parametrize("name", CALLS)
def test_a_matrix_that_the_budget_pays_for_is_formed(name):
    call, allowed = CALLS[name]
    found = call(operator_with(VALUES[:allowed]))
    assert found.method.startswith("dense")
    assert found.cost.passes <= allowed


def test_each_block_keeps_the_budget():
    model = nn.Sequential(nn.Linear(12, 12), nn.Linear(12, 1)).double()
    batch = torch.randn(4, 12).double(), torch.randn(4, 1).double()
    found = by_block(
        trace, model, batch, loss=HalfSquareLoss(), norm_mode="eval", max_matvecs=20
    )
    assert found.cost.passes <= 2 * 20


def test_no_more_vectors_are_forecast_than_there_are_parameters():
    """And a search makes do with them, whatever number was asked for."""
    operator = operator_with(VALUES[:53])
    found = memory_forecast(operator, k=1000)
    assert found.basis_vectors == 53 + 1 + 2 * 53
    given = {"k": 1000, "method": "products", "basis_bytes": found.basis}
    assert len(extreme_eigenvalues(operator, **given).eigenvalues) == 53


class Scaled(Operator):
    """One to two on the diagonal, never formed."""

    symmetric = True
    torch_dtype, device = torch.float32, torch.device("cpu")

    def __init__(self, size):
        self.shape = (size, size)
        self._diagonal = torch.linspace(1, 2, size)

    def product(self, vector):
        self.passes += 1
        return self._diagonal * vector


class Peak(TorchDispatchMode):
    """Follows the bytes of all tensors that come out of operators."""

    def __init__(self):
        super().__init__()
        self.users, self.now, self.most = {}, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._add(tensor)
        return result

    def _add(self, tensor):
        storage = tensor.untyped_storage()
        key, size = storage.data_ptr(), storage.nbytes()
        if not self.users.get(key):
            self.now += size
        self.users[key] = self.users.get(key, 0) + 1
        self.most = max(self.most, self.now)
        weakref.finalize(tensor, self._drop, key, size)

    def _drop(self, key, size):
        self.users[key] -= 1
        if not self.users[key]:
            self.now -= size


@pytest.mark.parametrize(("solve", "copies"), [(trace, 1), (diagonal, 2)])
def test_a_sketch_takes_little_more_than_its_vectors(solve, copies):
    size = 200_000
    operator = Scaled(size)
    with Peak() as peak:
        found = solve(operator, max_matvecs=60)
    vector = 4 * size
    # The directions, and some vectors and stretches on their way, in float64 too.
    assert peak.most <= (20 * copies + 16) * vector
    assert found.cost.passes == 60


def test_a_sketch_shrinks_to_what_memory_allows():
    size = 20_000
    with Peak() as peak:
        found = trace(Scaled(size), max_matvecs=60, basis_bytes=3 * 4 * size)
    assert peak.most <= (3 + 12) * 4 * size
    assert found.cost.passes == 60
    assert abs(found.trace - 1.5 * size) <= 4 * found.trace_error
    without = trace(Scaled(size), basis_bytes=0)
    assert without.method == "Hutchinson"
    assert abs(without.trace - 1.5 * size) <= 4 * without.trace_error


@pytest.mark.parametrize("solve", [spectral_density, index])
def test_a_basis_that_does_not_fit_is_refused_with_what_would(solve):
    operator, settings = Scaled(2_000), {"steps": 16, "n_probes": 1}
    with pytest.raises(MeasurementError, match=r"pass steps=9, or raise basis_bytes"):
        solve(operator, **settings, basis_bytes=10 * 4 * 2_000)
    assert operator.passes == 0
    solve(operator, n_probes=1, steps=9, basis_bytes=10 * 4 * 2_000)


def test_a_sketch_of_few_directions_stays_orthonormal():
    # Three directions carry the operator, and the sketch has twenty.
    values = np.r_[1e3, 1.0, 1e-3, np.zeros(57)]
    for dtype in (torch.float32, torch.float64):
        found = trace(operator_with(values, dtype=dtype), method="products")
        assert abs(found.trace - values.sum()) <= 4 * found.trace_error
