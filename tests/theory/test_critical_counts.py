"""Finite dimensions: closed forms, quadratures and samples agree where they overlap."""

import math

import numpy as np
import pytest

from theodolite.core import ConfigError, SpinGlassBlueprint
from theodolite.theory import critical_exponent, mean_critical_points
from theodolite.theory.spin_glass import goe_spectrum
from theodolite.theory.spin_glass.goe_spectrum import eigenvalue_density


def glass(width, order):
    """Return a glass of one order r, whose ratio x is r − 1."""
    return SpinGlassBlueprint(width=width, mixture={order: 1.0})


def brute(width, ratio, draws=40_000):
    """Average over dense matrices: log of the mean by index, with relative errors."""
    rng = np.random.default_rng(1)
    entries = rng.standard_normal((draws, width, width))
    # Off-diagonal variance 1, diagonal variance 2.
    values = np.linalg.eigvalsh((entries + entries.transpose(0, 2, 1)) / math.sqrt(2))
    weights = np.exp(-(ratio - 1) / (4 * (ratio + 1)) * values**2)
    scale = 2 * math.sqrt(2) * ratio ** (width / 2) / math.sqrt(1 + ratio)
    return scale * weights.mean(0), scale * weights.std(0) / math.sqrt(draws)


@pytest.mark.parametrize(
    ("width", "order", "count"),
    [(2, 3, 5.2915026221), (3, 3, 10.5523597412), (3, 4, 15.1453413801)],
)
def test_reference_values(width, order, count):
    result = mean_critical_points(glass(width, order))
    assert result.value == pytest.approx(count, abs=1e-9)
    assert result.method == "closed form"


@pytest.mark.parametrize("order", [2, 3, 6])
def test_closed_forms_are_limits_of_the_general_quadrature(order):
    x = order - 1.0
    for width in (2, 3):
        _, weights, density = eigenvalue_density(width, tilt=(x - 1) / (4 * (x + 1)))
        mean = weights @ density
        total = 2 * math.sqrt(2) * x ** (width / 2) / math.sqrt(1 + x) * mean
        result = mean_critical_points(glass(width, order)).value
        assert result == pytest.approx(total, rel=1e-11)


@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 9])
def test_indices_add_up_to_all_and_to_the_euler_characteristic(width):
    mixed = SpinGlassBlueprint(width=width, mixture={2: 0.5, 3: 0.3, 5: 0.2})
    parts = [mean_critical_points(mixed, index=k) for k in range(width)]
    values = np.array([part.value for part in parts])
    np.testing.assert_allclose(values, values[::-1], rtol=1e-12)
    slack = sum(part.value * 4 * part.error for part in parts)
    assert values.sum() == pytest.approx(mean_critical_points(mixed).value, abs=slack)
    alternating = values @ (-1.0) ** np.arange(width)
    assert alternating == pytest.approx(2.0 if width % 2 else 0.0, abs=slack + 1e-9)


@pytest.mark.parametrize("width", [4, 7])
def test_quadratures_meet_dense_matrices(width):
    means, errors = brute(width, 3.0)
    for k in range(3):
        result = mean_critical_points(glass(width, 4), index=k).value
        assert abs(result - means[k]) < 4 * errors[k]


@pytest.mark.parametrize("width", [2, 5, 20])
def test_two_spins_have_two_points_an_axis(width):
    pure = glass(width, 2)
    assert mean_critical_points(pure).value == pytest.approx(2 * width, rel=1e-11)
    for k in {0, 1, width - 1}:
        assert mean_critical_points(pure, index=k).value == pytest.approx(2, rel=1e-8)


@pytest.mark.parametrize(
    ("width", "order", "index"), [(6, 5, 0), (40, 3, 2), (80, 9, 0)]
)
def test_samples_meet_quadratures(width, order, index):
    result = mean_critical_points(
        glass(width, order), index=index, sampling=True, samples=3000, seed=3
    )
    exact = mean_critical_points(glass(width, order), index=index)
    assert (result.method, exact.method) == ("sampling", "quadrature")
    assert result.error < 0.05
    assert abs(result.log - exact.log) < 4 * result.error
    # The rival: the asymptotic formula, taken for the number at this dimension.
    assert abs(result.log - width * critical_exponent({order: 1.0})) > 20 * result.error


def test_samples_stay_accurate_at_dimension_500():
    """The values are those of the quadrature, which takes ten seconds here."""
    for order, log in ((5, 64.710922), (101, 697.112832)):
        result = mean_critical_points(
            glass(500, order), index=0, sampling=True, samples=4000
        )
        assert result.error < 0.15
        assert abs(result.log - log) < 4 * result.error


def test_convergence_to_the_exponent_is_slow():
    """From above, like the inverse square root of the dimension or slower."""
    theta, logs = critical_exponent({5: 1.0}), []
    for width, log in ((10, 0.358642), (20, 0.279101), (40, 0.223192), (80, 0.184325)):
        result = mean_critical_points(glass(width, 5), index=0).log / width
        assert result == pytest.approx(log, abs=1e-6)
        logs.append(result - theta)
    ratios = np.array(logs[1:]) / logs[:-1]
    assert ((ratios > 0.5) & (ratios < 0.75)).all()


def test_energies_below_a_level():
    mixed = SpinGlassBlueprint(width=4, mixture={2: 0.5, 4: 0.5})
    whole = mean_critical_points(mixed, index=1, sampling=True, seed=2)
    levels = [
        mean_critical_points(mixed, index=1, below=u, seed=2).log
        for u in (-1.0, 0.0, 9.0)
    ]
    assert levels[0] < levels[1] < levels[2]
    assert levels[2] == pytest.approx(whole.log, abs=1e-12)
    # A glass and its negative are alike: half of the saddles on a sphere lie below 0.
    half = mean_critical_points(glass(3, 3), index=1, below=0.0, seed=1)
    assert half.value == pytest.approx(4.27618 / 2, abs=4 * half.error * half.value)


def test_a_field_of_order_one_has_two_points():
    for width in (2, 3, 6):
        line = SpinGlassBlueprint(width=width, mixture={1: 1.0})
        assert mean_critical_points(line).value == pytest.approx(2, rel=1e-12)


@pytest.mark.parametrize("ratio", [1e-4, 1e-2, 0.3, 0.9])
def test_ratios_below_one_keep_their_digits(ratio):
    """Closed forms of dimensions 2 and 3, by the quadrature that serves all others."""
    for width, closed in (
        (2, 2 * math.sqrt(3 * ratio + 1)),
        (3, 2 + 8 * ratio**1.5 / math.sqrt(3 * ratio + 1)),
    ):
        tilt = (ratio - 1) / (4 * (ratio + 1))
        _, weights, density = eigenvalue_density(width, tilt=tilt)
        scale = 2 * math.sqrt(2) * ratio ** (width / 2) / math.sqrt(1 + ratio)
        assert scale * (weights @ density) == pytest.approx(closed, rel=1e-10)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"index": 4}, "index is 4, and a sphere in 4 dimensions has 3 directions"),
        ({"index": -1}, "index is -1: pass a whole number from 0 up"),
        ({"below": 0.0}, "without an index"),
        ({"index": 0, "mixture": {1: 0.9, 2: 0.1}}, "drop order 1 of the mixture"),
    ],
)
def test_bad_input_is_one_sentence(settings, words):
    mixture = settings.pop("mixture", {3: 1.0})
    plan = SpinGlassBlueprint(width=4, mixture=mixture)
    with pytest.raises(ConfigError) as caught:
        mean_critical_points(plan, **settings)
    assert words in str(caught.value)


def test_the_error_of_a_quadrature_covers_other_panels(monkeypatch):
    result = [mean_critical_points(glass(80, 101), index=k) for k in (0, 2)]
    goe_spectrum._edge.cache_clear()
    monkeypatch.setattr(goe_spectrum, "_WIDTH", 1.3)
    for k, before in zip((0, 2), result, strict=True):
        after = mean_critical_points(glass(80, 101), index=k)
        assert abs(after.log - before.log) < before.error < 1e-5
    goe_spectrum._edge.cache_clear()


def test_what_rounding_spoils_is_sampled():
    result = mean_critical_points(glass(700, 1001), index=2, samples=200)
    assert result.method == "sampling"
