"""Sampling estimates say what precision they reached, and whether it was asked for."""

import json
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from tests.instruments.spectra import Failing, operator_with
from theodolite.core import ConfigError, SampledReading, Status
from theodolite.instruments import (
    Trace,
    by_block,
    condition,
    diagonal,
    index,
    spectral_density,
    trace,
)


def error_without_noise(reading):
    """Return the error over the norm of a diagonal, less what noise adds to it."""
    error, norm = map(np.linalg.norm, (reading.diagonal_error, reading.diagonal))
    return error / np.sqrt(norm**2 - error**2)


VALUES = np.random.default_rng(0).normal(size=80)
FEW = {"n_probes": 1, "steps": 4}
# Each with too few products to be precise, and with the error that tol is about.
ESTIMATES = [
    (trace, {"max_matvecs": 6}, lambda r: r.trace_error / abs(r.trace)),
    (diagonal, {"max_matvecs": 6}, lambda r: error_without_noise(r)),
    (spectral_density, FEW, lambda r: r.cdf_error.max()),
    (index, FEW, lambda r: r.index_error),
    (
        condition,
        {"n_probes": 2, "steps": 40, "quantile": 0.5},
        lambda r: r.ratio_error / r.ratio,
    ),
]


@pytest.mark.parametrize(("measure", "settings", "error"), ESTIMATES)
def test_no_estimate_says_more_than_its_error(measure, settings, error):
    operator = operator_with(VALUES)
    free = measure(operator, method="products", **settings)
    assert isinstance(free, SampledReading)
    assert (free.status, free.tol) == (Status.SAMPLED, None)
    assert free.precision == pytest.approx(error(free))
    for factor, status in [(0.9, Status.IMPRECISE), (1.1, Status.CONVERGED)]:
        tol = factor * free.precision
        asked = measure(operator, method="products", tol=tol, **settings)
        assert asked.status is status
        first = str(asked).splitlines()[0]
        assert f"{asked.precision:.3g}" in first
        assert f"tol {tol:.3g}" in first
        assert "…" not in first
    assert not Status.IMPRECISE.trusted
    dense = measure(operator, method="dense", tol=1e-9)
    assert (dense.status, dense.precision) == (Status.EXACT, 0.0)
    with pytest.raises(ConfigError, match="tol is 0"):
        measure(operator, method="products", tol=0, **settings)


POINTS = {"grid": np.linspace(-3, 3, 9), "width": 0.5, "steps": 12}
# With how far float32 may be from float64: a percentile is one of 400 points.
LAWS = [
    (trace, "trace", {"max_matvecs": 12}, 1e-4),
    (diagonal, "diagonal", {"max_matvecs": 12}, 1e-4),
    (spectral_density, "density", POINTS, 1e-4),
    (index, "index", {"n_probes": 4, "steps": 12}, 1e-4),
    (condition, "ratio", {"quantile": 0.6, "steps": 12}, 0.05),
]


@pytest.mark.parametrize(("measure", "field", "settings", "near"), LAWS)
def test_same_seed_float32_and_products_that_fail(measure, field, settings, near):
    def read(operator, seed=1):
        return measure(operator, method="products", seed=seed, **settings)

    first, again, other = (
        getattr(read(operator_with(VALUES), seed), field) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    narrow = getattr(read(operator_with(VALUES, dtype=torch.float32)), field)
    np.testing.assert_allclose(narrow, first, atol=near * np.abs(first).max())
    for good in (1, 7, 11):  # in a sketch, or with a probe
        lost = read(Failing(operator_with(VALUES), good))
        assert lost.status is Status.NONFINITE
        assert np.isnan(getattr(lost, field)).all()
        error = getattr(lost, f"{field}_error")
        assert not np.isfinite(error).any()


def test_a_poor_trace_is_not_called_converged():
    poor = trace(operator_with(VALUES - VALUES.mean()), max_matvecs=6)
    assert poor.trace_error > abs(poor.trace)
    assert poor.rows()[0]["status"] == "sampled"
    assert "converged" not in str(poor)


def test_blocks_have_the_worst_status_of_their_traces():
    model = nn.Sequential(nn.Linear(30, 40), nn.Tanh(), nn.Linear(40, 1)).double()
    batch = torch.randn(8, 30).double(), torch.randn(8, 1).double()
    given = {"loss": nn.MSELoss(), "norm_mode": "eval", "max_matvecs": 50}
    found = by_block(trace, model, batch, **given)
    assert [r.status for r in found.readings] == [Status.SAMPLED, Status.EXACT]
    assert found.status is Status.SAMPLED
    asked = by_block(trace, model, batch, **given, tol=1e-9)
    assert asked.status is Status.IMPRECISE


def test_files_from_before_precision_was_kept_still_load(tmp_path):
    path = tmp_path / "trace.reading"
    found = trace(operator_with(VALUES), max_matvecs=6, tol=0.5)
    found.save(path)
    assert Trace.load(path).tol == 0.5
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    del header["fields"]["tol"], header["fields"]["precision"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("header.json", json.dumps(header))
    old = Trace.load(path)
    assert (old.trace, old.tol) == (found.trace, None)
