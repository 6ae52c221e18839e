import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from theodolite.core import (
    ConfigError,
    bootstrap_interval,
    estimate,
    fit_line,
    paired_test,
    stream,
)

numbers = st.floats(-1e6, 1e6)
samples = st.lists(numbers, min_size=2, max_size=20)


@given(samples)
@settings(deadline=None)
def test_estimate_is_numpys(values):
    average = estimate(values)
    std = np.std(values, ddof=1)
    assert average.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-12)
    assert average.std == pytest.approx(std, rel=1e-12, abs=1e-12)
    assert average.stderr == pytest.approx(std / math.sqrt(len(values)), abs=1e-12)
    assert average.n == len(values)


def test_a_single_network_has_no_error():
    average = estimate([2.0])
    assert (average.mean, average.n) == (2.0, 1)
    assert math.isnan(average.stderr)
    assert math.isnan(average.std)
    assert str(average) == "2 ± nan (n = 1)"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_diverged_network_is_never_left_out(bad):
    values = [1.0, bad, 2.0]
    assert not math.isfinite(estimate(values).mean)
    assert math.isnan(estimate(values).stderr)
    assert math.isnan(bootstrap_interval(values).low)
    assert math.isnan(bootstrap_interval(values).high)
    assert math.isnan(paired_test(values, [1.0, 1.0, 1.0]).p_value)
    assert math.isnan(paired_test(values, values).p_value)
    many = values * 8  # too many to enumerate
    assert math.isnan(paired_test(many, np.zeros(24)).p_value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: estimate([]),
        lambda: bootstrap_interval([]),
        lambda: paired_test([], []),
        lambda: bootstrap_interval([1.0, 2.0], level=1.0),
        lambda: bootstrap_interval([1.0, 2.0], level=95),
        lambda: paired_test([1.0, 2.0], [1.0]),
        lambda: fit_line([0, 1], [0, 1]),
        lambda: fit_line([0, 1, 2], [0, 1]),
        lambda: fit_line([1, 1, 1], [0, 1, 2]),
    ],
)
def test_misuse_is_refused_in_one_sentence(ask):
    with pytest.raises(ConfigError) as caught:
        ask()
    assert "\n" not in str(caught.value)
    assert ":" in str(caught.value)


# Coverage of the bootstrap interval -----------------------------------------------

N_SAMPLES = 200
POPULATIONS = {
    "normal": (lambda rng: rng.normal(3.0, 2.0, size=40), 3.0),
    "skewed": (lambda rng: rng.exponential(3.0, size=50), 3.0),
}


def intervals(name, level):
    draw, truth = POPULATIONS[name]
    result = [
        bootstrap_interval(
            draw(stream(i, "coverage", name)), level=level, n_resamples=999, seed=i
        )
        for i in range(N_SAMPLES)
    ]
    return result, truth


def close(hits, level):
    """Whether the coverage fits the level: 3 binomial deviations and an allowance.

    BCa covers too little at these sizes, by 0.01 for normal means and 0.02 for
    exponential ones; 0.02 is allowed below the level, nothing above.
    """
    deviation = math.sqrt(level * (1 - level) / N_SAMPLES)
    return -3 * deviation - 0.02 <= np.mean(hits) - level <= 3 * deviation


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_cover_the_mean_as_often_as_they_say(name, level):
    result, truth = intervals(name, level)
    assert close([truth in interval for interval in result], level)
    # The rivals: half the width (a standard error of a quarter of the seeds), and,
    # at a level where it shows, one and a half times the width.
    narrow = [abs(truth - i.centre) <= (i.high - i.low) / 4 for i in result]
    assert not close(narrow, level)
    if level == 0.8:
        wide = [abs(truth - i.centre) <= 0.75 * (i.high - i.low) for i in result]
        assert not close(wide, level)


def test_a_skewed_interval_leans_towards_the_tail():
    result, _ = intervals("skewed", 0.95)
    lean = [(i.high - i.centre) - (i.centre - i.low) for i in result]
    assert np.mean(np.array(lean) > 0) > 0.95


def test_an_interval_hangs_on_its_seed_alone():
    values = stream(0).normal(size=30)
    first = bootstrap_interval(values, seed=4)
    np.random.default_rng(1).normal(size=5)
    assert bootstrap_interval(list(values), seed=4) == first
    assert bootstrap_interval(values, seed=5) != first
    assert first.centre == pytest.approx(values.mean(), rel=1e-14)
    assert first.level == 0.95
    wide = bootstrap_interval(values, level=0.99, seed=4)
    assert wide.low < first.low < first.centre < first.high < wide.high


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-300), (1e9, 1.0), (0.0, 1e200)])
def test_an_interval_moves_and_stretches_with_its_sample(offset, scale):
    values = np.round(stream(1).normal(size=20), 6)
    plain = bootstrap_interval(values)
    moved = bootstrap_interval(offset + scale * values)
    assert moved.low == pytest.approx(offset + scale * plain.low, rel=1e-9)
    assert moved.high == pytest.approx(offset + scale * plain.high, rel=1e-9)


@pytest.mark.parametrize(
    "values",
    [[0.0, 1.0], [1.0, 1.0 + 2.3e-16, 1.0], [1e16, 1e16 + 2, 1e16], [0.0, 0.0, 5e-324]],
)
def test_an_interval_of_a_degenerate_sample_holds_its_mean(values):
    interval = bootstrap_interval(values)
    assert interval.low <= interval.centre <= interval.high
    assert interval.low >= min(values)
    assert interval.high <= max(values)


def test_an_interval_without_spread_is_a_point_and_of_one_value_everything():
    point = bootstrap_interval([0.1, 0.1, 0.1])
    assert point.low == point.high == point.centre == pytest.approx(0.1)
    alone = bootstrap_interval([0.1])
    assert (alone.low, alone.high) == (-math.inf, math.inf)
    assert 1e300 in alone


# Paired test ----------------------------------------------------------------------


def flips(differences):
    """Exact two-sided p-value over all sign flips, in whole numbers."""
    observed = abs(sum(differences))
    signs = itertools.product((1, -1), repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(row, differences))) for row in signs]  # noqa: B905
    return sum(total >= observed for total in sums) / len(sums)


def test_small_cases_by_hand():
    # ±1 ±2 ±3: of 8 sums only 6 and −6 are as far out as 6.
    assert paired_test([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]).p_value == 0.25
    # 1 + 2 − 3 = 0: every sum is as far out.
    assert paired_test([1.0, 2.0, 0.0], [0.0, 0.0, 3.0]).p_value == 1.0
    # −1 + 2 + 3 = 4: the sums 6, 4, −4, −6.
    assert paired_test([0.0, 2.0, 3.0], [1.0, 0.0, 0.0]).p_value == 0.5


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=8))
@settings(deadline=None, max_examples=50)
def test_p_values_are_exact_for_few_pairs(differences):
    second = np.arange(len(differences), dtype=float)
    test = paired_test(second + differences, second)
    assert test.p_value == pytest.approx(flips(differences), rel=1e-12)
    assert test.n == len(differences)


def test_p_values_are_exact_up_to_13_pairs():
    differences = [4, -1, 3, 2, 5, -2, 1, 6, 3, -4, 2, 1, 3]
    wanted = flips(differences)
    for seed in (0, 1):
        result = paired_test(differences, np.zeros(13), seed=seed).p_value
        assert result == pytest.approx(wanted, rel=1e-12)
    # One pair more is sampled: close, and never 0.
    wanted = flips([*differences, 2])
    result = paired_test([*differences, 2], np.zeros(14)).p_value
    assert result == pytest.approx(wanted, abs=4 * math.sqrt(wanted / 9999))
    assert paired_test(np.arange(1.0, 31.0), np.zeros(30)).p_value == 2 / 10_000


@pytest.mark.parametrize(("n", "n_resamples"), [(10, 9_999), (20, 399)])
def test_p_values_are_uniform_where_nothing_differs(n, n_resamples):
    result = []
    for i in range(300):
        rng = stream(i, "null", n)
        base = rng.normal(size=n)
        first, second = base + rng.laplace(size=n), base + rng.laplace(size=n)
        test = paired_test(first, second, n_resamples=n_resamples, seed=i)
        result.append(test.p_value)
    assert stats.kstest(result, "uniform").pvalue > 0.01
    deviation = math.sqrt(0.05 * 0.95 / 300)
    assert abs(np.mean(np.array(result) <= 0.05) - 0.05) < 3 * deviation


def test_a_paired_shift_is_seen_where_an_unpaired_test_is_blind():
    rng = stream(0, "shift")
    base = rng.normal(scale=10.0, size=16)
    first = base + 0.5 + rng.normal(scale=0.1, size=16)
    test = paired_test(first, base)
    assert test.p_value < 0.001
    assert test.difference == pytest.approx(0.5, abs=4 * test.stderr)
    assert test.stderr == pytest.approx(0.1 / 4, rel=0.5)
    assert stats.ttest_ind(first, base).pvalue > 0.5
    # The rival: the same numbers with the pairs shuffled.
    assert paired_test(first, rng.permutation(base)).p_value > 0.1


def test_a_test_is_antisymmetric_and_hangs_on_its_seed_alone():
    rng = stream(1)
    first, second = rng.normal(size=20), rng.normal(0.5, size=20)
    forth, back = paired_test(first, second), paired_test(second, first)
    assert forth.difference == -back.difference < 0
    assert forth == paired_test(list(first), list(second))
    assert forth != paired_test(first, second, seed=1)
    assert forth.p_value == pytest.approx(back.p_value, abs=0.02)


def test_a_test_of_equal_or_single_pairs_shows_nothing():
    equal = paired_test([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (equal.difference, equal.stderr, equal.p_value) == (0.0, 0.0, 1.0)
    alone = paired_test([5.0], [1.0])
    assert (alone.difference, alone.p_value, alone.n) == (4.0, 1.0, 1)
    assert math.isnan(alone.stderr)


# Lines ----------------------------------------------------------------------------


@given(st.integers(3, 30), st.integers(0, 2**32), st.floats(-5, 5), st.floats(0.01, 5))
@settings(deadline=None)
def test_a_line_is_scipys(n, seed, slope, noise):
    rng = stream(seed)
    x = rng.normal(2.0, 3.0, size=n)
    y = slope * x + 1.0 + noise * rng.normal(size=n)
    ours, theirs = fit_line(x, y), stats.linregress(x, y)
    assert ours.slope == pytest.approx(theirs.slope, rel=1e-8, abs=1e-10)
    assert ours.intercept == pytest.approx(theirs.intercept, rel=1e-8, abs=1e-8)
    assert ours.r_squared == pytest.approx(theirs.rvalue**2, rel=1e-8, abs=1e-10)
    # Where r² is near 1, scipy takes the error from 1 − r², which cancels.
    assert ours.slope_stderr == pytest.approx(theirs.stderr, rel=1e-5)


def test_the_error_of_a_slope_is_that_over_repeated_noise():
    x = np.arange(8.0)
    fits = [fit_line(x, 2 * x + stream(i).normal(size=8)) for i in range(400)]
    spread = np.std([fit.slope for fit in fits])
    # A standard deviation from 400 has a relative error of 1/√800 = 3.5 %.
    assert math.sqrt(np.mean([f.slope_stderr**2 for f in fits])) == pytest.approx(
        spread, rel=0.15
    )
    assert np.mean([fit.slope for fit in fits]) == pytest.approx(2, abs=4 * spread / 20)


def test_a_power_law_is_a_slope_on_logarithmic_axes():
    depth = np.array([2, 4, 8, 16])
    line = fit_line(np.log(depth), np.log(3.0 * depth**1.5))
    assert line.slope == pytest.approx(1.5, rel=1e-12)
    assert math.exp(line.intercept) == pytest.approx(3.0, rel=1e-12)
    assert line.r_squared == pytest.approx(1.0, abs=1e-12)
    assert line.slope_stderr < 1e-12


@pytest.mark.parametrize("level", [0.0, 0.1, 0.5, 1e9 / 3])
def test_a_flat_line_fits_perfectly(level):
    line = fit_line([0, 1, 2], [level] * 3)
    assert (line.slope, line.intercept) == (0.0, level)
    assert (line.slope_stderr, line.r_squared) == (0.0, 1.0)
