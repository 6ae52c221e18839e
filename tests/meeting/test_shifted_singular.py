"""Singular values of cI + A: the limit law against sampled matrices."""

import numpy as np
import pytest

from theodolite.core import ConfigError
from theodolite.theory import (
    shifted_singular_density,
    shifted_singular_edges,
    shifted_singular_shares,
)

SIZE, SHARES = 200, 5
LAWS = [(0.0, 0.5), (0.5, 1.0), (1.0, 1.0), (1.0, 3**-0.5), (2.0, 0.3)]


def shares_of(shift, deviation, seed, size=SIZE):
    """Mean singular values of equal shares, of a matrix with uniform entries."""
    drawn = np.random.default_rng(seed).uniform(-1, 1, size=(size, size))
    matrix = shift * np.eye(size) + drawn * deviation * np.sqrt(3 / size)
    values = np.sort(np.linalg.svd(matrix, compute_uv=False))
    return values.reshape(SHARES, -1).mean(axis=1)


@pytest.mark.parametrize(("shift", "deviation"), LAWS)
def test_shares_agree_and_the_law_without_a_shift_is_rejected(shift, deviation):
    drawn = np.array([shares_of(shift, deviation, seed) for seed in range(16)])
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / 4
    law = shifted_singular_shares(SHARES, deviation=deviation, shift=shift)
    # Beside chance, the ends of a finite spectrum are off by less than this.
    allowed = 4 * error + 0.005 * deviation
    assert (abs(mean - law) <= allowed).all()
    if shift:
        rival = shifted_singular_shares(SHARES, deviation=deviation, shift=0.0)
        assert (abs(mean - rival) > allowed).all()


@pytest.mark.parametrize(("shift", "deviation"), LAWS)
def test_the_density_has_mass_one_between_its_ends_and_none_beyond(shift, deviation):
    low, high = shifted_singular_edges(deviation=deviation, shift=shift)
    x = np.linspace(low, high, 40_001)
    density = shifted_singular_density(x, deviation=deviation, shift=shift)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-5)
    beyond = shifted_singular_density([1.01 * high], deviation=deviation, shift=shift)
    assert beyond[0] < 1e-6
    inside = shifted_singular_density([0.99 * high], deviation=deviation, shift=shift)
    assert inside[0] > 0.01


def test_without_a_shift_it_is_the_quarter_circle():
    x = np.linspace(0, 0.9, 7)
    wanted = np.sqrt(4 * 0.25 - x**2) / (np.pi * 0.25)
    result = shifted_singular_density(x, deviation=0.5, shift=0.0)
    np.testing.assert_allclose(result, wanted, rtol=1e-7)


def test_ends_in_closed_form():
    low, high = shifted_singular_edges(deviation=3**-0.5)
    assert (low**2, high**2) == pytest.approx((1 / 12, 32 / 9), rel=1e-12)
    assert shifted_singular_edges(deviation=1.0, shift=0.0) == (0.0, 2.0)
    low, high = shifted_singular_edges(deviation=1.0)  # where both are equal
    assert low == 0
    assert high**2 == pytest.approx(27 / 4, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"deviation": 0.0}, "deviation is 0.0: pass a positive number"),
        ({"deviation": float("nan")}, "deviation is nan: pass a positive number"),
        ({"deviation": 1.0, "shift": -1.0}, "shift is -1.0: pass a number from 0 up"),
    ],
)
def test_bad_arguments_are_refused(given, text):
    with pytest.raises(ConfigError) as caught:
        shifted_singular_edges(**given)
    assert str(caught.value) == text
    with pytest.raises(ConfigError, match="shares is 0: pass a whole number from 1 up"):
        shifted_singular_shares(0, deviation=1.0)
