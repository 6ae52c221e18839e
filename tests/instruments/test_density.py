"""Spectral density and distribution against those of dense matrices."""

import numpy as np
import pytest

from tests.cases import CASES
from tests.instruments.spectra import Failing, operator_with, smoothed
from theodolite.core import ConfigError, Status, stream
from theodolite.instruments import spectral_density, spectrum
from theodolite.instruments.solvers.quadrature import beta_bound, quadrature_of

BULK = np.r_[np.sort(np.random.default_rng(0).normal(size=298)), 12.0, 15.0]


def test_dense_is_exact_and_says_so():
    reading = spectral_density(operator_with(BULK))
    assert (reading.method, reading.status) == ("dense", Status.EXACT)
    truth = smoothed(BULK, reading.grid, reading.width, reading.ends)
    np.testing.assert_allclose(reading.density, truth, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(reading.smoothed(BULK), truth, rtol=1e-9, atol=1e-15)
    assert np.trapezoid(reading.density, reading.grid) == pytest.approx(1, abs=1e-3)
    assert reading.cdf[-1] == 1
    assert reading.seed is None


def test_quadrature_agrees_with_dense_within_its_band():
    exact = spectral_density(operator_with(BULK))
    reading = spectral_density(
        operator_with(BULK), method="products", grid=exact.grid, width=exact.width
    )
    inside = (reading.cdf_low <= exact.cdf) & (exact.cdf <= reading.cdf_high)
    assert inside.mean() > 0.97
    near = np.abs(reading.density - exact.density) <= 2 * reading.density_error + 1e-6
    assert near.mean() > 0.97
    assert np.all(np.diff(reading.cdf) >= 0)
    np.testing.assert_allclose(reading.weights.sum(1), 1, rtol=1e-12)
    assert reading.cost.passes == 8 * 64


@pytest.mark.parametrize("method", ["dense", "products"])
def test_no_mass_lies_where_no_eigenvalue_is(method):
    # Half of them zero, some small, three that stand apart: a trained network's.
    small = np.abs(np.random.default_rng(0).normal(size=147)) * 0.05
    values = np.r_[np.zeros(150), small, 5.0, 7.0, 10.0]
    reading = spectral_density(operator_with(values), method=method)
    assert reading.grid.min() > -1e-7
    assert reading.ends == pytest.approx((0, 10), abs=1e-7)
    below = spectral_density(
        operator_with(values), method=method, grid=np.array([-1e-6])
    )
    assert below.density == 0
    assert below.density_high < 1e-9
    assert np.trapezoid(reading.density, reading.grid) == pytest.approx(1, abs=0.01)
    # What lies further than four widths from every eigenvalue holds nothing.
    near = np.abs(reading.grid[:, None] - values).min(axis=1)
    assert reading.density[near > 5 * reading.width].max(initial=0) < 1e-4
    # A kernel of all the reach would be wider than what is small.
    assert reading.width < 0.25 * 1.5 * 10 / 64
    inside = reading.density[(reading.grid >= 4) & (reading.grid <= 6)]
    assert inside.max() > 0.5 / 300 / reading.width / np.sqrt(2 * np.pi)


def test_the_kernel_narrows_as_steps_are_added():
    widths = [
        spectral_density(
            operator_with(BULK), method="products", steps=n, n_probes=2
        ).width
        for n in (12, 24, 48)
    ]
    assert widths[0] > 1.7 * widths[1] > 1.7**2 * widths[2]
    # Outliers at 12 and 15 converge, and count no more for the reach.
    whole = 1.5 * np.ptp(BULK[:-2]) / 46
    assert 0.8 * whole < widths[2] <= whole


def test_points_lie_where_eigenvalues_are():
    reading = spectral_density(
        operator_with(np.r_[np.linspace(0, 1, 200), 1000.0]), steps=40
    )
    assert len(reading.grid) == 256
    assert np.all(np.diff(reading.grid) >= 0)
    assert (reading.grid <= 10).sum() > 100
    assert np.trapezoid(reading.density, reading.grid) == pytest.approx(1, abs=0.02)


def test_all_steps_make_the_rule_exact_for_its_vector():
    operator = operator_with(BULK[::10])
    rule = quadrature_of(operator, n_probes=2, steps=30, seed=0)
    assert not rule.couplings.any()
    np.testing.assert_allclose(rule.nodes[0], np.sort(BULK[::10]), rtol=1e-9)


def test_shares_weigh_vectors_by_their_squares():
    # The Beta distribution holds for Σ‖Pg‖²/Σ‖g‖², not for the mean of the ratios.
    operator = operator_with(BULK[::10])
    values, columns = np.linalg.eigh(operator._matrix.numpy())
    rule = quadrature_of(operator, n_probes=3, steps=30, seed=2)
    vectors = [
        stream(2, "quadrature", p).standard_normal(len(values)) for p in range(3)
    ]
    below = columns[:, values <= 0.1]
    inside = sum(np.sum((below.T @ g) ** 2) for g in vectors)
    exact = inside / sum(g @ g for g in vectors)
    found = rule.share(np.array([-np.inf]), np.array([0.1]), level=0.9)
    np.testing.assert_allclose(found.centre, exact, rtol=1e-9)


def test_the_truncated_rule_bounds_the_share_of_its_own_vector():
    # Rigorous, so it must hold for every vector and every point.
    values = np.sort(BULK)
    operator = operator_with(values)
    points = np.linspace(-3, 16, 41)
    below = np.full(41, -np.inf)
    for seed in range(5):
        exact = quadrature_of(operator, n_probes=1, steps=300, seed=seed)
        short = quadrature_of(operator, n_probes=1, steps=15, seed=seed)
        truth = exact._one_share(0, below, points)[0]
        _, least, most = short._one_share(0, below, points)
        assert np.all(least <= truth + 1e-9)
        assert np.all(truth <= most + 1e-9)
        truth = exact._one_share(0, -points[25:], points[25:])[0]
        _, least, most = short._one_share(0, -points[25:], points[25:])
        assert np.all(least <= truth + 1e-9)
        assert np.all(truth <= most + 1e-9)
        assert np.mean(most - least) < 0.5


def test_a_heavy_atom_is_settled():
    values = np.r_[np.zeros(150), np.linspace(1, 3, 150)]
    reading = spectral_density(
        operator_with(values), method="products", grid=np.array([-0.5, 0.5])
    )
    assert reading.cdf_high[0] < 0.02
    assert reading.cdf_low[1] < 0.5 < reading.cdf_high[1]
    assert reading.cdf_error[1] < 0.05


def test_beta_bound_inverts_the_distribution():
    from scipy.stats import beta

    for share in (0.01, 0.3, 0.99):
        high = beta_bound(np.array([share]), 240, 0.05, upper=True)[0]
        low = beta_bound(np.array([share]), 240, 0.05, upper=False)[0]
        assert beta.cdf(share, 120 * high, 120 * (1 - high)) == pytest.approx(0.05)
        assert beta.sf(share, 120 * low, 120 * (1 - low)) == pytest.approx(0.05)


@pytest.mark.parametrize("case", CASES[:2], ids=lambda c: c.name)
def test_models_near_their_spectrum(case):
    model, batch, loss = case.make()
    values = spectrum(model, batch, loss=loss, norm_mode="batch").eigenvalues
    reading = spectral_density(
        model,
        batch,
        loss=loss,
        norm_mode="batch",
        method="products",
        steps=40,
        n_probes=4,
    )
    truth = (values <= reading.grid[:, None] + 1e-12).mean(1)
    inside = (reading.cdf_low <= truth + 1e-9) & (truth - 1e-9 <= reading.cdf_high)
    assert inside.mean() > 0.95
    assert reading.norm_mode == "batch"


def test_vectors_before_one_that_fails_count():
    part = spectral_density(
        Failing(operator_with(BULK), good=30), method="products", steps=8
    )
    assert part.status is Status.NONFINITE
    assert part.nodes.shape == (3, 8)
    assert np.isfinite(part.density).all()


@pytest.mark.parametrize(
    "settings",
    [{"width": 0.0}, {"level": 1.0}, {"grid": 1}, {"n_probes": 0}, {"steps": 1},
     {"grid": np.array([np.nan])}],
)  # fmt: skip
def test_misuse(settings):
    with pytest.raises(ConfigError):
        spectral_density(operator_with(BULK[:5]), **settings)


def test_rows_are_labelled_by_the_grid():
    rows = spectral_density(operator_with(BULK), grid=np.array([0.0, 1.0])).rows()
    assert rows.only(quantity="cdf", point=1.0)["value"] > 0.8
