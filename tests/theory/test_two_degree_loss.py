"""Losses of two degrees: gradients by differences, forces, and what is refused."""

import numpy as np
import pytest

from theodolite.core import ConfigError
from theodolite.theory import TwoDegreeLoss, least_norm_force


@pytest.fixture
def loss():
    rng = np.random.default_rng(3)
    return TwoDegreeLoss(
        shallow=rng.normal(size=(4, 4)),
        deep=rng.normal(size=(4, 4, 4)),
        scales=np.array([0.7, -1.2, 0.9]),
    )


@pytest.fixture
def weights():
    return np.random.default_rng(4).normal(size=4)


def value(loss, w):
    parts = loss.parts(w)
    return parts.shallow + parts.deep


def test_gradients_are_those_of_differences(loss, weights):
    step = 1e-5
    around = [
        (value(loss, weights + step * e) - value(loss, weights - step * e)) / (2 * step)
        for e in np.eye(4)
    ]
    result = loss.parts(weights).gradient
    np.testing.assert_allclose(result, around, rtol=1e-8, atol=1e-8)


def test_the_last_scale_is_in_the_deep_part_alone(loss, weights):
    doubled = TwoDegreeLoss(
        shallow=loss.shallow, deep=loss.deep, scales=loss.scales * [1, 1, 2]
    )
    here, there = loss.parts(weights), doubled.parts(weights)
    assert there.shallow == here.shallow
    assert there.deep == pytest.approx(2 * here.deep, rel=1e-14)


def test_euler(loss, weights):
    step = 1e-6
    rise = value(loss, (1 + step) * weights) - value(loss, (1 - step) * weights)
    parts = loss.parts(weights)
    assert parts.euler() == pytest.approx(rise / (2 * step), rel=1e-8)


def test_the_least_force_is_met_by_opposite_gradients():
    a, b, m, p = 1.3, 0.9, 2, 5
    angles = np.linspace(0, np.pi, 100_001)
    forces = m * a**2 + p * b**2 + (m + p) * a * b * np.cos(angles)
    least = least_norm_force(a, b, shallow=m, deep=p)
    assert least == pytest.approx(forces.min(), rel=1e-12)
    assert least < 0


@pytest.mark.parametrize(
    ("shallow", "deep", "scales", "words"),
    [
        ((2, 2), (2,), 1, "fewer axes first"),
        ((2,), (3, 3), 2, "of one length"),
        ((2,), (2, 2), 3, "one number per layer"),
    ],
)
def test_refusals(shallow, deep, scales, words):
    with pytest.raises(ConfigError, match=words):
        TwoDegreeLoss(
            shallow=np.ones(shallow), deep=np.ones(deep), scales=np.ones(scales)
        )


def test_a_scale_of_zero_is_refused():
    with pytest.raises(ConfigError, match="none of them zero"):
        TwoDegreeLoss(shallow=np.ones(2), deep=np.ones((2, 2)), scales=np.array([0, 1]))
