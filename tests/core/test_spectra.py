import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from theodolite.core import (
    ConfigError,
    Interpolation,
    UnknownNameError,
    condition_of,
    index_of,
    stream,
)

sizes = st.floats(1e-3, 1e3)
signs = st.sampled_from([-1.0, 1.0])
spectra = st.lists(st.tuples(signs, sizes).map(math.prod), min_size=1, max_size=12)
quantiles = st.floats(0, 0.999) | st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75])


def percentile(eigenvalues, quantile, interpolation):
    """Read the percentile off the sorted sizes, by the definition of each kind."""
    size = sorted(abs(value) for value in eigenvalues)
    place = (len(size) - 1) * quantile
    below, above = size[math.floor(place)], size[math.ceil(place)]
    return {
        "linear": below + (place - math.floor(place)) * (above - below),
        "lower": below,
        "higher": above,
        "midpoint": (below + above) / 2,
        "nearest": size[round(place)],  # halves to the even place, as NumPy's
    }[interpolation]


@given(spectra, quantiles, st.sampled_from(get_args(Interpolation)))
@settings(deadline=None, max_examples=100)
@example([1.0, 2.0, 3.0], 0.25, "nearest")
@example([1.0, 2.0, 3.0, 4.0], 0.5, "nearest")
def test_percentile_conditions_by_brute_force(eigenvalues, quantile, interpolation):
    condition = condition_of(
        np.array(eigenvalues), quantile=quantile, interpolation=interpolation
    )
    largest = max(map(abs, eigenvalues))
    small = percentile(eigenvalues, quantile, interpolation)
    assert condition.largest == largest
    assert condition.small == pytest.approx(small, rel=1e-12)
    assert condition.ratio == pytest.approx(largest / small, rel=1e-12)
    assert condition.resolved


def test_the_kinds_of_interpolation_differ():
    eigenvalues = np.array([1.0, 2.0, 4.0, 8.0])
    result = {
        kind: condition_of(eigenvalues, quantile=0.2, interpolation=kind).small
        for kind in get_args(Interpolation)
    }
    assert result == {
        "linear": pytest.approx(1.6),
        "lower": 1.0,
        "higher": 2.0,
        "nearest": 2.0,
        "midpoint": 1.5,
    }
    assert condition_of(eigenvalues, quantile=0.2).small == result["linear"]


def test_quantile_zero_is_the_plain_condition_number():
    for i in range(20):
        half = stream(i).normal(size=(6, 6))
        matrix = half + half.T
        condition = condition_of(np.linalg.eigvalsh(matrix), quantile=0.0)
        assert condition.ratio == pytest.approx(np.linalg.cond(matrix), rel=1e-9)


def test_a_zero_percentile_is_infinite_and_not_resolved():
    for eigenvalues in ([0.0, 1.0, 2.0], [0.0, 0.0], [0.0]):
        condition = condition_of(np.array(eigenvalues), quantile=0.0)
        assert (condition.ratio, condition.error, condition.resolved) == (
            math.inf,
            math.inf,
            False,
        )
    # One zero in three does not reach the median.
    assert condition_of(np.array([0.0, 1.0, 2.0]), quantile=0.5).ratio == 2.0


def test_what_drowns_in_rounding_is_not_resolved():
    eigenvalues = np.array([1e-17, 1.0, 2.0])
    condition = condition_of(eigenvalues, quantile=0.0)
    assert not condition.resolved
    assert condition.error == math.inf
    assert condition.ratio == pytest.approx(2e17)
    assert condition_of(eigenvalues, quantile=0.0, rounding=1e-18).resolved
    assert not condition_of(np.array([1.0, 2.0]), quantile=0.0, rounding=1.0).resolved
    assert condition_of(np.array([1.0, 2.0]), quantile=0.0, rounding=0.99).resolved


def test_the_usual_rounding_is_that_of_a_symmetric_solver():
    eps = np.finfo(np.float64).eps
    rounding = 3 * eps * 4.0
    condition = condition_of(np.array([2.0, 1.0, 4.0]), quantile=0.0)
    assert condition.error == pytest.approx(4.0 * rounding * (1 / 1.0 + 1 / 4.0))
    assert condition_of(np.array([1.0]), rounding=0.0).error == 0.0


@given(
    spectra,
    quantiles,
    st.sampled_from(["linear", "lower", "higher", "midpoint"]),
    st.floats(1e-6, 0.1),
    st.integers(0, 2**32),
)
@settings(deadline=None)
def test_the_error_bounds_what_rounding_can_do(
    eigenvalues, quantile, interpolation, part, seed
):
    asked = {"quantile": quantile, "interpolation": interpolation}
    rounding = part * condition_of(np.array(eigenvalues), **asked).small
    condition = condition_of(np.array(eigenvalues), **asked, rounding=rounding)
    noise = stream(seed).uniform(-rounding, rounding, size=len(eigenvalues))
    moved = condition_of(eigenvalues + noise, **asked, rounding=rounding)
    # Exact to first order: all orders together divide it by 1 − rounding / small.
    bound = condition.error / (1 - part) * (1 + 1e-9)
    assert abs(moved.ratio - condition.ratio) <= bound


@given(spectra, st.floats(1e-6, 1e-3))
@settings(deadline=None)
def test_the_error_is_attained(eigenvalues, part):
    size = np.sort(np.abs(eigenvalues))
    assume(size[-1] > size[0])
    rounding = part * float(size[0])
    condition = condition_of(size, quantile=0.0, rounding=rounding)
    size[0] -= rounding
    size[-1] += rounding
    moved = condition_of(size, quantile=0.0)
    assert moved.ratio - condition.ratio == pytest.approx(condition.error, rel=2e-3)


@given(spectra, st.floats(0, 100))
@settings(deadline=None)
def test_the_index_is_the_share_of_negative_eigenvalues(eigenvalues, rounding):
    wanted = sum(value < -rounding for value in eigenvalues) / len(eigenvalues)
    assert index_of(np.array(eigenvalues), rounding=rounding) == pytest.approx(wanted)


def test_zero_is_not_negative():
    assert index_of(np.array([-0.0, 0.0, -1e-12, 3.0])) == 0.25
    assert index_of(np.array([-0.0, 0.0, -1e-12, 3.0]), rounding=1e-12) == 0.0
    assert index_of(np.array([-1, -2])) == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nonfinite_eigenvalues_give_nan_that_is_not_resolved(bad):
    condition = condition_of(np.array([1.0, bad, 2.0]))
    assert math.isnan(condition.ratio)
    assert math.isnan(condition.error)
    assert not condition.resolved
    index = index_of(np.array([1.0, bad]))
    assert math.isnan(index) if math.isnan(bad) else index == (bad < 0) / 2


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda: condition_of(np.array([])), "shape"),
        (lambda: condition_of(np.eye(2)), "shape"),
        (lambda: index_of(np.array([])), "shape"),
        (lambda: index_of(np.eye(2)), "shape"),
        (lambda: condition_of(np.ones(2), quantile=1.0), "quantile 1.0"),
        (lambda: condition_of(np.ones(2), quantile=-0.1), "quantile -0.1"),
        (lambda: condition_of(np.ones(2), quantile=math.nan), "quantile nan"),
        (lambda: condition_of(np.ones(2), rounding=-1.0), "rounding -1.0"),
        (lambda: condition_of(np.ones(2), rounding=math.nan), "rounding nan"),
    ],
)
def test_misuse_is_refused(ask, hint):
    with pytest.raises(ConfigError, match=hint):
        ask()


def test_an_unknown_interpolation_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'linear'"):
        condition_of(np.ones(2), interpolation="linaer")
    with pytest.raises(UnknownNameError, match="weibull"):
        condition_of(np.ones(2), interpolation="weibull")


@pytest.mark.parametrize("seed", range(200))
def test_the_least_ratio_is_a_bound_where_the_ratio_itself_is_none(seed):
    """Eigenvalues moved by up to their error: the exact ratio is at least the least."""
    rng = stream(seed, "made spectra")
    true = np.concatenate([10.0 ** rng.uniform(-3, 0, 9), [1e-9 * rng.uniform(0, 3)]])
    error = 1e-9
    seen = condition_of(
        true + rng.uniform(-error, error, 10), quantile=0.0, rounding=error
    )
    exact = condition_of(true, quantile=0.0, rounding=0.0)
    assert seen.least <= exact.ratio
    if seen.resolved:
        assert abs(seen.ratio - exact.ratio) <= seen.error


def test_an_unresolved_ratio_may_exceed_the_exact_one():
    seen = condition_of(np.array([1.0, 1e-12]), quantile=0.0, rounding=1e-9)
    exact = condition_of(np.array([1.0, 5e-10]), quantile=0.0, rounding=0.0)
    assert not seen.resolved
    assert seen.ratio > exact.ratio > seen.least
