import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from theodolite.core import ConfigError, estimate, fit_line, stream

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


@pytest.mark.parametrize(
    "ask",
    [
        lambda: estimate([]),
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


@given(st.integers(3, 30), st.integers(0, 2**32), st.floats(-5, 5), st.floats(0.01, 5))
@settings(deadline=None)
def test_a_line_is_scipys(n, seed, slope, noise):
    rng = stream(seed)
    x = rng.normal(2.0, 3.0, size=n)
    y = slope * x + 1.0 + noise * rng.normal(size=n)
    ours, theirs = fit_line(x, y), stats.linregress(x, y)
    assert ours.slope == pytest.approx(theirs.slope, rel=1e-8, abs=1e-10)
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
    assert line.slope_stderr < 1e-12


@pytest.mark.parametrize("level", [0.0, 0.1, 0.5, 1e9 / 3])
def test_a_flat_line_fits_perfectly(level):
    line = fit_line([0, 1, 2], [level] * 3)
    assert (line.slope, line.slope_stderr) == (0.0, 0.0)
