"""Stated intervals cover the truth at their stated rate, over 120 seeds.

A rate is refused when binomial chance explains it with a probability below 1e-3.
"""

import numpy as np
import pytest
from scipy.stats import binom, t

from tests.instruments.spectra import matrix_with, operator_with, smoothed
from theodolite.instruments import (
    MatrixOperator,
    condition,
    diagonal,
    index,
    spectral_density,
    trace,
)
from theodolite.instruments.solvers.quadrature import quadrature_of

N, SEEDS = 60, 120
RANDOM = np.random.default_rng(5)
SPECTRA = {
    "flat": np.linspace(0.5, 2.5, N),
    "decaying": 0.8 ** np.arange(N),
    "indefinite": RANDOM.normal(size=N),
    "low_rank": np.r_[np.linspace(1, 2, 6), np.zeros(N - 6)],
    # A rank just above that of the sketch: two eigenvalues are left to chance.
    "step": np.r_[np.ones(8), np.full(N - 8, 1e-3)],
    "atom": np.r_[np.zeros(20), -np.linspace(0.5, 1, 10), np.linspace(0.5, 3, 30)],
}
each_spectrum = pytest.mark.parametrize("name", SPECTRA)


def least(level, trials=SEEDS):
    return binom.ppf(1e-3, trials, level)


def most(level, trials=SEEDS):
    return binom.ppf(1 - 1e-3, trials, level)


def readings(instrument, operator, **settings):
    for seed in range(SEEDS):
        yield instrument(operator, seed=seed, method="products", **settings)


@each_spectrum
def test_trace(name):
    operator, truth = operator_with(SPECTRA[name]), SPECTRA[name].sum()
    found = list(readings(trace, operator, max_matvecs=18))
    off = np.array([r.trace - truth for r in found])
    errors = np.array([r.trace_error for r in found])
    assert sum(r.trace_low <= truth <= r.trace_high for r in found) >= least(0.95)
    for level in (0.5, 0.8):  # other levels differ in Student's factor only
        assert np.sum(np.abs(off) <= t.ppf((1 + level) / 2, 5) * errors) >= least(level)
    if name != "low_rank":  # where the trace is exact, the error is rounding
        # One standard error is one: not inflated to be on the safe side.
        assert 0.75 < np.sqrt((off**2).mean() / (errors**2).mean()) < 1.3
        # Unbiased within chance.
        assert abs(off.mean()) < 4 * off.std() / np.sqrt(SEEDS)


def test_the_spread_of_few_numbers_would_not_do():
    # The rival: an interval from the sample spread of 6 probes undercovers.
    values = SPECTRA["step"]
    matrix, hits = matrix_with(values), 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        q = np.linalg.qr(matrix @ rng.normal(size=(N, 6)))[0]
        d = rng.normal(size=(N, 6))
        d -= q @ (q.T @ d)
        forms = np.einsum("ij,ij->j", d, matrix @ d)
        mean = np.trace(q.T @ matrix @ q) + forms.mean()
        half = t.ppf(0.975, 5) * forms.std(ddof=1) / np.sqrt(6)
        hits += abs(mean - values.sum()) <= half
    assert hits < least(0.95, 1000)


@pytest.mark.parametrize("name", ["indefinite", "low_rank", "step"])
def test_diagonal_entries(name):
    matrix = matrix_with(SPECTRA[name])
    operator = operator_with(SPECTRA[name])
    hits = [
        np.abs(r.diagonal - np.diag(matrix)) <= r.factor * r.diagonal_error
        for r in readings(diagonal, operator, max_matvecs=18)
    ]
    rate = np.mean(hits)
    if name == "low_rank":
        assert rate > 0.99
    else:  # of 7,200 entries, those of one reading not quite independent
        assert 0.94 < rate < 0.96


@pytest.mark.parametrize("name", ["flat", "indefinite"])
def test_distribution_function_of_exact_rules(name):
    # All steps taken, only chance is left, and its interval is exact.
    values = SPECTRA[name][::3]
    operator = operator_with(values)
    points = np.quantile(values, [0.1, 0.3, 0.6, 0.9]) + 1e-9
    truth = (values <= points[:, None]).mean(1)
    hits = np.zeros(4)
    for seed in range(SEEDS):
        rule = quadrature_of(operator, n_probes=2, steps=20, seed=seed)
        band = rule.share(np.full(4, -np.inf), points, level=0.9)
        hits += (band.low <= truth) & (truth <= band.high)
    assert np.all(hits >= least(0.9))
    assert np.all(hits <= most(0.9))


@pytest.mark.parametrize("name", ["indefinite", "atom"])
def test_density_and_distribution_of_short_rules(name):
    values = SPECTRA[name]
    points = np.quantile(values, [0.1, 0.5, 0.9]) + 0.01
    truth = (values <= points[:, None]).mean(1)
    hits, smooth = np.zeros(3), np.zeros(3)
    for r in readings(
        spectral_density, operator_with(values), n_probes=2, steps=10, grid=points
    ):
        exact = smoothed(values, points, r.width, r.ends)
        hits += (r.cdf_low - 1e-12 <= truth) & (truth <= r.cdf_high + 1e-12)
        smooth += (r.density_low <= exact) & (exact <= r.density_high)
    assert np.all(hits >= least(0.95))
    assert np.all(smooth >= least(0.95))


@pytest.mark.parametrize("name", ["decaying", "low_rank"])
def test_bands_hold_at_all_points_at_once(name):
    values, trials = SPECTRA[name], 40
    operator, steps, curves, worst = operator_with(values), 0, 0, []
    for seed in range(trials):
        r = spectral_density(
            operator, n_probes=2, steps=10, grid=64, seed=seed, method="products"
        )
        truth = (values <= r.grid[:, None]).mean(1)
        exact = smoothed(values, r.grid, r.width, r.ends)
        stairs = (r.cdf_low - 1e-9 <= truth) & (truth <= r.cdf_high + 1e-9)
        smooth = (r.density_low <= exact) & (exact <= r.density_high)
        steps, curves = steps + stairs.all(), curves + smooth.all()
        worst.append(min(stairs.mean(), smooth.mean()))
    assert steps >= least(0.95, trials)
    assert curves >= least(0.95, trials)
    # Where a band fails it does not fail by half of its points.
    assert min(worst) > 0.7


def test_one_point_alone_is_an_interval_of_its_own():
    operator = operator_with(SPECTRA["indefinite"])
    shared = {"n_probes": 2, "steps": 30, "method": "products"}
    alone = spectral_density(operator, grid=np.array([0.1]), **shared)
    points = np.append(np.linspace(-2, 2, 60), 0.1)
    among = spectral_density(operator, grid=points, **shared)
    assert among.cdf_error[-1] > 1.15 * alone.cdf_error[0]


@pytest.mark.parametrize("name", ["indefinite", "atom"])
def test_index_and_zeros(name):
    values = SPECTRA[name]
    hits = zeros = 0
    for r in readings(index, operator_with(values), n_probes=2, steps=10):
        negative = (values < -r.rounding).mean()
        near = (np.abs(values) <= r.rounding).mean()
        hits += r.index_low - 1e-12 <= negative <= r.index_high + 1e-12
        zeros += abs(r.near_zero - near) <= 2 * r.near_zero_error + 1e-12
    assert hits >= least(0.95)
    assert zeros >= least(0.95)


def test_condition():
    values = np.abs(SPECTRA["indefinite"])
    truth = values.max() / np.quantile(values, 0.5)
    found = readings(
        condition,
        operator_with(SPECTRA["indefinite"]),
        quantile=0.5,
        n_probes=2,
        steps=16,
    )
    hits = sum(r.ratio_low <= truth <= r.ratio_high for r in found)
    assert hits >= least(0.95)


def test_a_wrong_matrix_is_not_covered():
    # The rival of the tests above: a matrix that is 20 % larger.
    values = SPECTRA["flat"]
    moved = MatrixOperator(operator_with(values)._matrix * 1.2, symmetric=True)
    found = readings(trace, moved, max_matvecs=30)
    hits = sum(r.trace_low <= values.sum() <= r.trace_high for r in found)
    assert hits < least(0.95)
