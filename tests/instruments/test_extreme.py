"""Extreme eigenvalues against dense ones, with residuals that certify them."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES, shortcut_case
from tests.instruments.spectra import Failing, operator_with
from theodolite.core import ConfigError, MeasurementError, Status, UnknownNameError
from theodolite.instruments import (
    MatrixOperator,
    extreme_eigenvalues,
    hessian,
)

OUTLIERS = np.r_[50.0, 20, 10, 7, 5, 3, np.linspace(-0.3, 0.3, 194), -4.0, -6.0]


def products(operator, **settings):
    return extreme_eigenvalues(operator, **{"method": "products", **settings})


@pytest.mark.parametrize(
    ("case", "mode"),
    [(c, "batch") for c in CASES] + [(c, "eval") for c in CASES if c.norm == "batch"],
    ids=lambda value: getattr(value, "name", value),
)
def test_both_ends_of_every_model(case, mode):
    model, batch, loss = case.make()
    exact = np.linalg.eigvalsh(hessian(model, batch, loss=loss, norm_mode=mode).matrix)
    reading = extreme_eigenvalues(
        model, batch, loss=loss, norm_mode=mode, k=2, method="products", tol=1e-7
    )
    scale = np.abs(exact).max()
    np.testing.assert_allclose(reading.eigenvalues, exact[::-1][:2], atol=1e-8 * scale)
    np.testing.assert_allclose(reading.smallest, exact[:2], atol=1e-8 * scale)
    assert reading.status is Status.CONVERGED
    assert reading.norm_mode == mode
    dense = extreme_eigenvalues(
        model, batch, loss=loss, norm_mode=mode, k=2, method="dense"
    )
    assert (dense.method, dense.status) == ("dense", Status.EXACT)
    np.testing.assert_allclose(dense.eigenvalues, exact[::-1][:2], atol=1e-12 * scale)


@pytest.mark.parametrize(
    ("ends", "top", "bottom"),
    [
        ("both", [50, 20, 10], [-6, -4, -0.3]),
        ("largest", [50, 20, 10], []),
        ("smallest", [], [-6, -4, -0.3]),
        ("magnitude", [50, 20, 10], []),
    ],
)
def test_the_ends_asked_for(ends, top, bottom):
    reading = products(operator_with(OUTLIERS), k=3, ends=ends, tol=1e-8)
    np.testing.assert_allclose(reading.eigenvalues, top, atol=1e-9)
    np.testing.assert_allclose(reading.smallest, bottom, atol=1e-9)
    np.testing.assert_array_less(reading.residuals, 1e-8)
    assert reading.cost.passes < 120


def test_magnitude_takes_from_both_sides():
    reading = products(operator_with(-OUTLIERS), k=3, ends="magnitude", vectors=True)
    np.testing.assert_allclose(reading.eigenvalues, [-50, -20, -10], rtol=1e-9)
    assert reading.eigenvectors.shape == (len(OUTLIERS), 3)


def test_residuals_are_true_and_errors_hold():
    for seed in range(20):
        operator = operator_with(OUTLIERS, seed=seed)
        reading = products(
            operator, k=4, ends="largest", tol=1e-2, seed=seed, vectors=True
        )
        matrix = operator._matrix.numpy()
        rest = matrix @ reading.eigenvectors - reading.eigenvectors * (
            reading.eigenvalues
        )
        norms = np.linalg.norm(rest, axis=0)
        np.testing.assert_array_less(norms, reading.errors)
        np.testing.assert_allclose(
            norms / reading.eigenvalues, reading.residuals, rtol=1e-6, atol=1e-13
        )
        off = np.abs(reading.eigenvalues - [50, 20, 10, 7])
        np.testing.assert_array_less(off, reading.sharp_errors + 1e-13)
        assert reading.sharp_errors[0] < 0.1 * reading.errors[0]


def test_stopping_by_value_keeps_its_word():
    operator = operator_with(OUTLIERS)
    slow = products(operator, k=5, ends="largest", tol=1e-4, chance=0.01)
    fast = products(operator, k=5, ends="largest", tol=1e-4, stop="value")
    assert fast.cost.passes <= slow.cost.passes
    assert "chance of a miss" in fast.method
    np.testing.assert_allclose(fast.eigenvalues, OUTLIERS[:5], rtol=1e-4)
    assert fast.status is Status.CONVERGED


@pytest.mark.parametrize("copies", [2, 6])
def test_repeated_eigenvalues_of_few_kinds(copies):
    values = np.repeat([3.0, 2.0, 1.0, -1.0], copies)
    reading = products(operator_with(values), k=5)
    descending = np.sort(values)[::-1]
    np.testing.assert_allclose(reading.eigenvalues, descending[:5], rtol=1e-12)
    np.testing.assert_allclose(reading.smallest, descending[::-1][:5], rtol=1e-12)
    if copies > 2:  # of two, rounding alone brings the second on some processors
        assert "sweeps" in reading.method


def test_repeated_eigenvalues_on_request():
    values = np.r_[9.0, 9.0, 9.0, 8.0, 7.0, 7.0, np.linspace(-1, 1, 200)]
    reading = products(operator_with(values), k=5, ends="largest", repeated=True)
    np.testing.assert_allclose(reading.eigenvalues, [9, 9, 9, 8, 7], rtol=1e-8)
    assert reading.status is Status.CONVERGED


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_was_found_leaves_no_ghosts_at_zero(dtype, sign):
    # Of definite matrices the end near zero is the one where ghosts would show.
    for seed in range(12):
        sizes = np.abs(np.random.default_rng(seed).normal(size=30)) + 0.05
        ends = "largest" if sign < 0 else "smallest"
        operator = operator_with(sign * sizes, seed=seed, dtype=dtype)
        found = products(operator, k=3, ends=ends, repeated=True, max_matvecs=400)
        values = found.eigenvalues if sign < 0 else found.smallest
        wanted = sign * np.sort(sizes)[:3]
        np.testing.assert_allclose(values, wanted, atol=1e-3 * sizes.max())


def test_a_linear_layer_whose_outputs_are_alike():
    torch.manual_seed(3)
    layer = nn.Linear(20, 10).double()
    batch = torch.randn(256, 20).double(), torch.randn(256, 10).double()
    given = {"loss": nn.MSELoss(), "norm_mode": "eval", "k": 3}
    found = extreme_eigenvalues(layer, batch, **given)
    exact = extreme_eigenvalues(layer, batch, **given, method="dense")
    np.testing.assert_allclose(found.smallest, exact.smallest, rtol=1e-9)
    assert found.status is Status.CONVERGED


def test_a_shortcut_network_at_zero_has_repeated_eigenvalues():
    model, batch, loss = shortcut_case(width=4, depth=6, init="zero")
    exact = np.linalg.eigvalsh(
        hessian(model, batch, loss=loss, norm_mode="eval").matrix
    )
    assert np.ptp(exact[-5:]) < 1e-12 * exact[-1]
    reading = extreme_eigenvalues(
        model, batch, loss=loss, norm_mode="eval", k=5, method="products"
    )
    np.testing.assert_allclose(reading.eigenvalues, exact[::-1][:5], rtol=1e-9)
    np.testing.assert_allclose(reading.smallest, exact[:5], rtol=1e-9)


def test_the_zero_operator():
    operator = MatrixOperator(torch.zeros(20, 20).double(), symmetric=True)
    reading = products(operator, k=3)
    for found in (reading.eigenvalues, reading.smallest, reading.residuals):
        np.testing.assert_array_equal(found, np.zeros(3))
    assert reading.status is Status.CONVERGED
    assert not reading.errors.any()


@pytest.mark.parametrize("method", ["dense", "products"])
def test_fewer_eigenvalues_than_asked_for(method):
    reading = extreme_eigenvalues(operator_with([1.0, 2.0]), k=5, method=method)
    np.testing.assert_allclose(reading.eigenvalues, [2, 1])
    np.testing.assert_allclose(reading.smallest, [1, 2])
    single = extreme_eigenvalues(operator_with([3.0]), k=1, method=method)
    np.testing.assert_allclose(single.eigenvalues, [3])


@pytest.mark.parametrize("method", ["dense", "products"])
def test_what_is_not_told_from_zero_says_so(method):
    values = np.r_[5.0, 4.0, 3.0, np.zeros(50)]
    reading = extreme_eigenvalues(operator_with(values), k=2, method=method)
    assert reading.smallest_statuses == (Status.ROUNDING, Status.ROUNDING)
    assert reading.status.trusted
    np.testing.assert_array_less(np.abs(reading.smallest), reading.smallest_errors)


def test_nonfinite_products_leave_what_was_found():
    reading = products(Failing(operator_with(OUTLIERS), good=9), k=2)
    assert reading.status is Status.NONFINITE
    assert reading.eigenvalues[0] == pytest.approx(50, rel=1e-3)
    off = np.abs(reading.eigenvalues - [50, 20])
    np.testing.assert_array_less(off, reading.errors)
    nothing = products(Failing(operator_with(OUTLIERS), good=0), k=2)
    assert nothing.status is Status.NONFINITE
    assert np.isnan(nothing.eigenvalues).all()
    assert np.isinf(nothing.errors).all()


def test_a_spent_budget_is_a_status_with_honest_residuals():
    reading = products(operator_with(OUTLIERS), k=3, max_matvecs=8)
    assert reading.status is Status.MAX_MATVECS
    assert reading.cost.passes == 8
    assert reading.residuals.max() > 1e-6
    exact = np.sort(OUTLIERS)
    for value, error in zip(reading.eigenvalues, reading.errors, strict=True):
        assert np.abs(exact - value).min() <= error


def test_a_small_memory_restarts_and_agrees():
    operator = operator_with(np.r_[OUTLIERS, np.linspace(-0.3, 0.3, 400)])
    n = operator.shape[0]
    free = products(operator, k=3, ends="largest", tol=1e-9)
    tight = products(operator, k=3, ends="largest", tol=1e-9, basis_bytes=n * 8 * 17)
    np.testing.assert_allclose(tight.eigenvalues, free.eigenvalues, rtol=1e-12)
    assert tight.cost.passes > 13  # more steps than vectors that fit
    with pytest.raises(MeasurementError, match="GiB"):
        products(operator, k=3, basis_bytes=n * 8 * 10)


def test_same_seed_same_reading_and_float32_near_float64():
    first = products(operator_with(OUTLIERS), k=2, seed=3)
    again = products(operator_with(OUTLIERS), k=2, seed=3)
    np.testing.assert_array_equal(first.eigenvalues, again.eigenvalues)
    np.testing.assert_array_equal(first.residuals, again.residuals)
    other = products(operator_with(OUTLIERS), k=2, seed=4)
    assert (first.residuals != other.residuals).any()
    narrow = products(operator_with(OUTLIERS, dtype=torch.float32), k=2, tol=1e-4)
    np.testing.assert_allclose(narrow.eigenvalues, [50, 20], rtol=1e-5)
    np.testing.assert_array_less(np.abs(narrow.eigenvalues - [50, 20]), narrow.errors)


def test_rows_hold_both_ends_with_errors():
    rows = products(operator_with(OUTLIERS), k=2).rows(depth=3)
    top = rows.only(quantity="eigenvalues", rank=0)
    bottom = rows.only(quantity="smallest", rank_from_below=0)
    assert top["value"] == pytest.approx(50)
    assert bottom["value"] == pytest.approx(-6)
    assert 0 < top["error"] < 1e-3
    assert top["passes"] > 3
    assert top["depth"] == 3


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"k": 0}, ConfigError, "k is 0"),
        ({"max_matvecs": 1}, ConfigError, "max_matvecs"),
        ({"ends": "top"}, UnknownNameError, "end"),
        ({"tol": -1.0}, ConfigError, "tol"),
        ({"method": "magic"}, UnknownNameError, "method"),
        ({"stop": "soon"}, UnknownNameError, "unknown stop"),
    ],
)
def test_misuse_is_one_sentence(settings, error, words):
    with pytest.raises(error, match=words) as caught:
        products(operator_with(OUTLIERS), **settings)
    assert "\n" not in str(caught.value)


def test_an_operator_that_does_not_claim_symmetry_is_refused():
    with pytest.raises(MeasurementError, match="not symmetric"):
        extreme_eigenvalues(MatrixOperator(torch.eye(3)))
    lopsided = MatrixOperator(torch.ones(3, 3).triu(), symmetric=True)
    with pytest.raises(MeasurementError, match="not symmetric"):
        extreme_eigenvalues(lopsided)


def test_a_large_model_needs_few_products():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 5)).double()
    x, y = torch.randn(40, 20).double(), torch.randint(0, 5, (40,))
    reading = extreme_eigenvalues(
        model,
        (x, y),
        loss=nn.CrossEntropyLoss(),
        norm_mode="eval",
        k=4,
        ends="largest",
        tol=1e-3,
    )
    exact = np.linalg.eigvalsh(
        hessian(model, (x, y), loss=nn.CrossEntropyLoss(), norm_mode="eval").matrix
    )
    np.testing.assert_allclose(reading.eigenvalues, exact[::-1][:4], rtol=1e-3)
    assert reading.method.startswith("Lanczos")
    assert reading.cost.passes <= 40
