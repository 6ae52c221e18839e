"""Eigenvalues, condition and index, with errors that can be trusted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES, shortcut_case
from tests.oracles import looped_hessian
from theodolite.core import Status
from theodolite.instruments import (
    HalfSquareLoss,
    condition,
    hessian,
    index,
    spectrum,
    spectrum_of,
)
from theodolite.instruments.curvature import spectra


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.double_backward], ids=lambda c: c.name
)
def test_eigenvalues_of_the_oracle(case):
    model, batch, loss = case.make()
    reading = spectrum(model, batch, loss=loss, norm_mode="batch")
    model.train()
    exact = np.linalg.eigvalsh(looped_hessian(model, batch, loss).detach().numpy())
    np.testing.assert_allclose(
        reading.eigenvalues, exact[::-1], atol=1e-12 * np.abs(exact).max()
    )
    assert np.all(np.diff(reading.eigenvalues) <= 0)
    found = index(model, batch, loss=loss, norm_mode="batch")
    assert found.index <= (exact < 0).mean() <= found.index + found.index_error


def test_large_matrices_are_solved_as_small_ones_are(monkeypatch):
    model, batch, loss = shortcut_case()
    reading = hessian(model, batch, loss=loss, norm_mode="batch")
    small = spectrum_of(reading)
    monkeypatch.setattr(spectra, "_LARGE", 1)
    monkeypatch.delattr(np.linalg, "eigvalsh")
    for writeable in (True, False):
        reading.matrix.flags.writeable = writeable
        before = reading.matrix.copy()
        large = spectrum_of(reading)
        np.testing.assert_allclose(
            large.eigenvalues, small.eigenvalues, atol=small.eigenvalue_error
        )
        np.testing.assert_array_equal(reading.matrix, before)


def test_condition_and_its_percentile():
    model, batch, loss = shortcut_case()
    values = np.abs(spectrum(model, batch, loss=loss, norm_mode="batch").eigenvalues)
    reading = condition(model, batch, loss=loss, norm_mode="batch", quantile=0.1)
    assert reading.ratio == pytest.approx(values.max() / np.quantile(values, 0.1))
    assert reading.status is Status.EXACT
    assert 0 < reading.ratio_error < 1e-6 * reading.ratio


def test_a_matrix_of_which_only_the_entries_errors_are_known():
    model, batch, loss = shortcut_case()
    reading = hessian(model, batch, loss=loss, norm_mode="batch")
    bare = replace(reading, norm_error=float("nan"), matrix_error=1e-3)
    error = spectrum_of(bare).eigenvalue_error
    assert error == pytest.approx(1e-3 * len(bare.matrix))
    assert spectrum_of(reading).eigenvalue_error < 1e-10


def test_a_ratio_that_rounding_leaves_open_has_a_least_value():
    # Diagonal loss in float32, whose percentile is lost in the rounding of the rest.
    scales = torch.tensor([1.0, 1.0, 3e-5])
    model = nn.Linear(3, 1, bias=False)
    lopsided = torch.linalg.qr(torch.randn(3, 3).double())[0].float() * scales
    batch = lopsided, torch.ones(3, 1)
    settings = {"loss": HalfSquareLoss(), "norm_mode": "eval", "quantile": 0.0}
    found = condition(model, batch, **settings)
    wide = tuple(part.double() for part in batch)
    exact = condition(model.double(), wide, **settings)
    assert exact.status is Status.EXACT
    assert found.status is Status.ROUNDING
    assert 1e4 < found.ratio_low <= exact.ratio <= found.ratio_high == np.inf
    # Read off a spectrum: the ratio itself may be far above the exact one.
    wider = replace(
        spectrum(model, wide, loss=HalfSquareLoss(), norm_mode="eval"),
        eigenvalues=np.array([1.0, 1e-5]),
        eigenvalue_error=1e-3,
    ).condition(quantile=0.0)
    assert wider.ratio > 1 / 5e-4 > wider.ratio_low == pytest.approx(0.999 / 1.01e-3)


def test_rows_carry_all_that_a_number_needs():
    model, batch, loss = shortcut_case()
    rows = condition(model, batch, loss=loss, norm_mode="eval").rows(depth=4)
    ratio = rows.only(quantity="ratio")
    assert ratio["error"] > 0
    assert ratio["norm_mode"] == "eval"
    assert ratio["status"] == "exact"
    assert ratio["depth"] == 4
    assert ratio["passes"] == 36
    assert ratio["cpu_s"] > 0
