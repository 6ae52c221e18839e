"""Weights of path lengths: digits, peaks, bands, and what is refused."""

import math
import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from theodolite.core import ConfigError
from theodolite.theory import (
    configuration_repeats,
    log_legendre_normaliser,
    log_legendre_sum,
    log_missing_mass_bound,
    log_path_normaliser,
    log_path_weights,
    missing_mass,
    path_counts,
    path_length_moments,
    path_masses,
    path_peak,
    path_weight_slopes,
    path_weights,
    plain_path_count,
    scale_for_path_length,
)

TENTH, HALF = Fraction(1, 10), Fraction(1, 2)
SCALES = [1e-300, 1e-9, 0.1, 0.5, 1.0, 1.0000001, 2.0, 7.3, 1e12, 1e300]


def whole(depth, beta):
    """The weights as whole numbers, for a fraction."""
    a, b = Fraction(beta).as_integer_ratio()
    return [math.comb(depth - 1, r - 1) * a**r * b ** (depth - r)
            for r in range(1, depth + 1)]  # fmt: skip


def precise(depth, beta, length):
    """A weight's logarithm to 50 digits, up to the normaliser."""
    with mpmath.workdps(50):
        return (
            mpmath.loggamma(depth)
            - mpmath.loggamma(length)
            - mpmath.loggamma(depth - length + 1)
            + length * mpmath.log(mpmath.mpf(beta))
        )


@pytest.mark.parametrize(
    ("depth", "beta"),
    [
        *((depth, beta) for depth in (1, 2, 3, 17, 18, 1_000) for beta in SCALES),
        *((1_000_000, beta) for beta in (1e-9, 0.1, 0.5, 1.0000001, 2.0)),
    ],
)
def test_logarithms_have_twelve_digits(depth, beta):
    result = log_path_weights(depth, beta)
    assert result.shape == (depth,)
    assert np.exp(2 * result).sum() == pytest.approx(1, abs=1e-12)
    peak = path_peak(depth, beta)[0]
    step = max(1, math.isqrt(depth) // 2)
    lengths = {1, 2, depth // 3, depth // 2, depth - 1, depth}
    lengths |= {peak - 5 * step, peak - step, peak + step, peak + 5 * step}
    for length in sorted(r for r in lengths if 1 <= r <= depth):
        with mpmath.workdps(50):
            truth = precise(depth, beta, length) - precise(depth, beta, peak)
        gap = float(
            truth - mpmath.mpf(result[length - 1]) + mpmath.mpf(result[peak - 1])
        )
        assert abs(gap) <= 1e-12 * max(1, abs(float(truth))), length


def test_a_million_layers_take_no_time():
    start = time.process_time()
    log_path_weights(1_000_000, 0.5)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("depth", "beta", "peak", "weight", "mean", "variance"),
    [
        (100, TENTH, (10,), 0.4391144721, 9.7921736198, 4.1133357993),
        (100, HALF, (34,), 0.3459653506, 33.9161895516, 11.0559549991),
        (10, 1, (5, 6), 0.5714300405, 5.5, 1.1911764706),
        (9, HALF, (3, 4), None, 3.5768187066, 0.9503055853),
        (100, 2, (67,), None, None, None),
    ],
)
def test_reference_values(depth, beta, peak, weight, mean, variance):
    assert path_peak(depth, beta) == peak
    result = path_weights(depth, beta)
    if weight is not None:
        assert result[peak[0] - 1] == pytest.approx(weight, abs=1e-10)
    if mean is not None:
        moments = path_length_moments(depth, beta)
        assert moments.mean == pytest.approx(mean, abs=1e-10)
        assert moments.variance == pytest.approx(variance, abs=1e-10)


@pytest.mark.parametrize("beta", [TENTH, HALF, Fraction(1), Fraction(7, 3)])
@pytest.mark.parametrize("depth", [1, 2, 7, 50])
def test_weights_are_those_of_whole_numbers(depth, beta):
    truth = whole(depth, beta)
    squares = sum(w * w for w in truth)
    wanted = [float(Fraction(w * w, squares)) for w in truth]
    np.testing.assert_allclose(path_weights(depth, beta) ** 2, wanted, rtol=1e-12)
    most = max(truth)
    assert path_peak(depth, beta) == tuple(
        r for r, w in enumerate(truth, start=1) if w == most
    )
    mean = Fraction(sum(r * w * w for r, w in enumerate(truth, start=1)), squares)
    assert path_length_moments(depth, beta).mean == pytest.approx(
        float(mean), rel=1e-13
    )


def test_divided_by_their_sum_weights_are_binomial():
    result = path_weights(40, 0.7)
    law = result / result.sum()
    lengths = np.arange(1, 41)
    mean = law @ lengths
    assert mean == pytest.approx(1 + 39 * 0.7 / 1.7, rel=1e-12)
    assert law @ (lengths - mean) ** 2 == pytest.approx(39 * 0.7 / 1.7**2, rel=1e-12)


def test_a_float_is_the_fraction_that_it_is():
    assert path_peak(110, TENTH) == (10, 11)
    assert path_peak(110, 0.1) == (11,)  # the float is a little more than a tenth
    assert path_peak(9, 0.5) == (3, 4)
    assert path_peak(10**40, HALF)[0] == -(-(10**40) // 3)


@pytest.mark.parametrize("depth", [1, 2, 9, 10])
def test_every_length_has_its_interval_of_scales(depth):
    before = Fraction(0)
    for k in range(1, depth + 1):
        result = scale_for_path_length(depth, k)
        assert result.low == before
        assert path_peak(depth, result.middle) == (k,)
        assert result.middle in result
        if k < depth:
            assert path_peak(depth, result.high) == (k, k + 1)
            assert result.high in result
            before = result.high
            assert before * (1 + Fraction(1, 10**12)) not in result
    assert result.high == math.inf


@pytest.mark.parametrize("beta", SCALES)
@pytest.mark.parametrize("depth", [1, 2, 10, 500])
def test_normalisers_agree_by_three_ways(depth, beta):
    with mpmath.workdps(50):
        logs = [precise(depth, beta, r) for r in range(1, depth + 1)]
        truth = mpmath.log(mpmath.fsum(mpmath.exp(2 * one) for one in logs)) / 2
    scale = 1e-12 * max(1, abs(float(truth)))
    assert log_path_normaliser(depth, beta) == pytest.approx(float(truth), abs=scale)
    assert log_legendre_normaliser(depth, beta) == pytest.approx(
        float(truth), abs=scale
    )


def test_reference_values_of_sums_of_squares():
    for way in (log_path_normaliser, log_legendre_normaliser):
        assert math.exp(2 * way(10, 0.5)) == pytest.approx(72.9556322097778, rel=1e-13)
        assert math.exp(2 * way(10, 2)) == pytest.approx(305998100, rel=1e-13)
        assert math.exp(2 * way(10, 1)) == pytest.approx(math.comb(18, 9), rel=1e-13)
    assert math.exp(log_legendre_sum(10, 0.5)) == pytest.approx(
        623.520539283752, rel=1e-13
    )


def test_slopes_are_derivatives_of_the_weights():
    step = 1e-6
    up, down = (path_weights(10, 0.5 * math.exp(s)) for s in (step, -step))
    result = path_weight_slopes(10, 0.5)
    np.testing.assert_allclose(result, (up - down) / (2 * step), atol=1e-9)
    assert result[0] == pytest.approx(-0.17040242, abs=1e-8)
    assert result[3] == pytest.approx(0.05473313, abs=1e-8)
    weights = path_weights(10, 0.5)
    assert weights[0] == pytest.approx(0.05853837, abs=1e-8)  # printed for the slope
    assert 4 * weights[3] == pytest.approx(2.45861135, abs=1e-8)


@pytest.mark.parametrize("beta", [TENTH, HALF, Fraction(1), Fraction(3)])
@pytest.mark.parametrize("depth", [1, 10, 100, 400])
@pytest.mark.parametrize("margin", [0.02, 0.05, 0.2])
def test_what_is_missing_is_within_the_bound(depth, beta, margin):
    share = float(beta / (1 + beta))
    low, high = round(max(0, share - margin), 3), round(min(1, share + margin), 3)
    truth = whole(depth, beta)
    first, last = (Fraction(str(end)) * depth for end in (low, high))
    out = sum(w * w for r, w in enumerate(truth, start=1) if not first <= r <= last)
    missing = missing_mass(depth, beta, low, high)
    assert missing == pytest.approx(
        float(Fraction(out, sum(w * w for w in truth))), rel=1e-10, abs=1e-300
    )
    if missing > 0:
        assert math.log(missing) <= log_missing_mass_bound(depth, beta, low, high)


def test_the_bound_bites_and_is_trivial_where_it_must():
    assert log_missing_mass_bound(100_000, 0.5, 0.3, 0.4) < -100
    assert log_missing_mass_bound(100, 0.5, 0.5, 0.9) == 0
    assert log_missing_mass_bound(100, 0.5, 0, 1) == -math.inf
    assert missing_mass(100, 0.5, 0, 1) == 0


def test_paths_are_counted_exactly():
    assert path_masses(5, 4, 3) == (12, 192, 1152, 3072, 3072)
    assert sum(path_counts(5, 4)) == 2500 == 4 * 5**4
    assert sum(path_counts(200, 30)) == 30 * 31**199
    assert plain_path_count(200, 30) == 30**200
    assert configuration_repeats(3, 4, 3, 3) == (4, Fraction(96, 9), Fraction(192, 27))


BAD = [
    (lambda: path_weights(0, 0.5), "depth is 0: pass a whole number from 1 up"),
    (lambda: path_weights(2.5, 0.5), "depth is 2.5"),
    (lambda: path_weights(10**9, 0.5), "depth 10,000,000; ask path_peak"),
    (lambda: path_weights(3, 0), "beta is 0: pass a positive, finite number"),
    (lambda: path_peak(3, -0.5), "beta is -0.5"),
    (lambda: path_peak(3, math.nan), "beta is nan"),
    (lambda: log_path_normaliser(3, math.inf), "beta is inf"),
    (lambda: path_weights(3, "0.5"), "beta is '0.5'"),
    (lambda: path_weights(3, Fraction(10**400)), "beyond the range of floats"),
    (lambda: path_weights(3, Fraction(1, 10**400)), "beyond the range of floats"),
    (lambda: scale_for_path_length(5, 0), "the path length is 0 in a network of"),
    (lambda: scale_for_path_length(5, 6), "pass a whole number from 1 to 5"),
    (lambda: scale_for_path_length(0, 1), "depth is 0"),
    (lambda: scale_for_path_length(5, 1.5), "length is 1.5: pass a whole number"),
    (lambda: path_counts(0, 3), "depth is 0"),
    (lambda: path_counts(3, 0), "width is 0"),
    (lambda: path_masses(3, 3, 0), "inputs is 0"),
    (lambda: configuration_repeats(3, 3, 3, 0), "unique is 0"),
    (lambda: missing_mass(10, 0.5, 0.6, 0.4), "a band from 0.6 to 0.4"),
    (lambda: log_missing_mass_bound(10, 0.5, math.nan, 1), "a band from nan to 1"),
]


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(("call", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_input_is_a_sentence(call, words):
    with pytest.raises(ConfigError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("untyped")
def test_numbers_of_numpy_are_numbers():
    result = path_weights(np.int64(4), np.float32(0.5))
    np.testing.assert_array_equal(result, path_weights(4, 0.5))
