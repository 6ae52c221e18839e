"""Interpolating networks: reference values, clearance, rounding, refusals."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from theodolite.core import ConfigError
from theodolite.theory import (
    interpolating_network,
    minimum_distance,
    sphere_path,
    step_unit,
    weight_norm_bound,
)
from theodolite.theory.linear.interpolation import residual_unit
from theodolite.theory.linear.sphere_paths import separated_labels

REFERENCE = np.array([np.ones(3) / np.sqrt(3), [0.6, 0.0, 0.8], [-0.6, 0.8, 0.0]])


def unit_rows(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@st.composite
def point_sets(draw, least=0.05):
    m, d = draw(st.integers(2, 7)), draw(st.integers(3, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x, y = (unit_rows(rng.normal(size=(m, d))) for _ in range(2))
    assume(minimum_distance(np.concatenate([x, y])) >= least)
    return x, y


@pytest.mark.parametrize(
    ("units", "norm", "bound"),
    [(30, 1.8094420801, 3.257875), (480, 0.4525922511, 0.814469)],
)
def test_reference_values(units, norm, bound):
    net = interpolating_network(REFERENCE, np.eye(3), units)
    assert net.rho == pytest.approx(0.6192085644, abs=1e-10)
    assert net.max_norm == pytest.approx(norm, abs=1e-10)
    assert net.bound == pytest.approx(bound, abs=1e-6)
    np.testing.assert_allclose(net.apply(REFERENCE), np.eye(3), atol=1e-12)


def test_norms_fall_with_the_root_of_the_units():
    limit = np.sqrt(8 * 3 * np.pi / 2) / 0.6192085644
    scaled = [
        interpolating_network(REFERENCE, np.eye(3), units).max_norm * np.sqrt(units)
        for units in (30, 120, 480)
    ]
    assert limit == pytest.approx(9.9158, abs=1e-4)
    gaps = np.abs(np.array(scaled) - limit)
    assert gaps[-1] < 1e-4
    # Chords in place of arcs: the gap falls with the square of the step.
    np.testing.assert_allclose(gaps[:-1] / gaps[1:], 16, rtol=0.01)


@settings(max_examples=40)
@given(point_sets(), st.integers(5, 40))
def test_every_sample_reaches_its_label_clear_of_the_others(points, steps):
    x, y = points
    net = interpolating_network(x, y, steps * len(x))
    way = net.trajectory(x)
    np.testing.assert_allclose(way[-1], y, atol=1e-9)
    assert min(minimum_distance(state) for state in way) >= net.rho / 2 * (1 - 1e-12)
    assert net.max_norm <= net.bound
    assert net.max_bias <= net.bound
    np.testing.assert_allclose(net.norms[:, 0], net.norms[:, 1], rtol=1e-9)
    assert net.lengths.max() <= np.pi * (1 + net.rho * (len(x) - 1) / 2)
    assert (net.steps == steps).all()


def test_small_distances_want_a_closed_loop():
    side = np.array([0.0, 0.0, 1.0])
    angle = 2 * np.arcsin(0.025)
    x = np.stack([[1.0, 0, 0], np.cos(angle) * np.eye(3)[0] + np.sin(angle) * side])
    y = np.stack([[0.0, 1, 0], -side])
    closed = interpolating_network(x, y, 400)
    assert closed.rho == pytest.approx(0.05)
    np.testing.assert_allclose(closed.apply(x), y, atol=1e-9)
    opened = interpolating_network(x, y, 400, closed_loop=False)
    assert np.abs(opened.apply(x) - y).max() > 1e-3
    # Nor is the closed loop any good for another input: the map itself expands.
    assert np.abs(closed.apply(x * (1 + 1e-15)) - y).max() > 1e-3


def test_a_loop_closed_around_other_arithmetic_serves_that():
    rng = np.random.default_rng(0)
    x, y = (unit_rows(rng.normal(size=(12, 3))) for _ in range(2))

    def coarse(rows, *unit):
        return residual_unit(rows, *unit).astype(np.float32).astype(np.float64)

    net = interpolating_network(x, y, 240, propagate=coarse)
    state = x
    for unit in zip(net.first, net.second, net.bias, strict=True):
        state = coarse(state, *unit)
    assert np.abs(state - y).max() < 1e-6
    assert np.abs(net.apply(x) - y).max() > 1e-3


def test_samples_come_out_the_same_in_any_company():
    rng = np.random.default_rng(1)
    x, y = (unit_rows(rng.normal(size=(9, 9))) for _ in range(2))
    net = interpolating_network(x, y, 90)
    np.testing.assert_array_equal(net.apply(x[3:5]), net.apply(x)[3:5])


def test_units_left_over_go_to_the_longest_paths():
    net = interpolating_network(REFERENCE, np.eye(3), 32)
    assert net.units == 32
    assert sorted(net.steps) == [10, 11, 11]
    assert net.steps[np.argmin(net.lengths)] == 10
    np.testing.assert_allclose(net.apply(REFERENCE), np.eye(3), atol=1e-12)
    assert (
        net.max_norm <= net.bound == weight_norm_bound(rho=net.rho, samples=3, units=30)
    )


class TestLemmaOne:
    def test_one_step_and_nothing_else(self):
        here, side, third = np.eye(3)
        for step, rho in ((0.3, 0.5), (0.01, 0.1)):
            turn = 2 * np.arcsin(step / 2)
            there = np.cos(turn) * here + np.sin(turn) * side
            unit = step_unit(here, there, rho)
            norms = [np.linalg.norm(part) for part in unit[:2]]
            np.testing.assert_allclose(norms, np.sqrt(8 * step) / rho, rtol=1e-12)
            rim, near = (2 * np.arcsin(share * rho / 2) for share in (0.5001, 0.45))
            others = np.stack(
                [np.cos(a) * here + np.sin(a) * third for a in (rim, near)]
            )
            moved = residual_unit(np.vstack([here, others]), *unit)
            np.testing.assert_allclose(moved[0], there, atol=1e-13)
            np.testing.assert_array_equal(moved[1], others[0])
            assert np.linalg.norm(moved[2] - others[1]) > 0.01 * step

    def test_no_step_is_no_unit(self):
        assert not any(part.any() for part in step_unit(*np.eye(3)[[0, 0]], 0.5))


class TestPaths:
    @settings(max_examples=60)
    @given(point_sets(least=0.1))
    def test_clear_all_the_way(self, points):
        x, y = points
        rho = minimum_distance(np.concatenate([x, y]))
        path = sphere_path(x[0], y[0], x[1:], rho / 2)
        way = path.steps(997)
        np.testing.assert_allclose(np.linalg.norm(way, axis=1), 1, atol=1e-12)
        gaps = np.linalg.norm(way[:, None] - x[1:], axis=2)
        assert gaps.min() >= rho / 2 * (1 - 1e-12)
        chords = np.linalg.norm(np.diff(way, axis=0), axis=1)
        assert chords.max() <= path.length / 997 * (1 + 1e-9)
        assert chords.sum() == pytest.approx(path.length, rel=1e-3)

    @pytest.mark.parametrize("offset", [0.0, 0.1, -0.2])
    def test_around_a_point_on_the_way(self, offset):
        start, end, up = np.eye(3)
        other = unit_rows((start + end + offset * up)[None])
        path = sphere_path(start, end, other, 0.3)
        gaps = np.linalg.norm(path.steps(500) - other, axis=1)
        assert path.detours == 1
        assert 0.3 <= gaps.min() < 0.3 * (1 + 1e-6)
        assert np.pi / 2 < path.length <= np.pi / 2 + 0.3 * np.pi
        # The shorter way round is the one away from the point.
        assert path.steps(2)[1] @ up * np.sign(offset) <= 0

    def test_to_the_antipode(self):
        start = unit_rows(np.ones((1, 4)))[0]
        path = sphere_path(start, -start, np.eye(4)[3:], 0.1)
        assert path.length == pytest.approx(np.pi)


class TestRefusals:
    def test_repeated_labels_can_be_perturbed(self):
        rng = np.random.default_rng(0)
        x, y = unit_rows(rng.normal(size=(5, 3))), np.eye(3)[[0, 1, 0, 0, 2]]
        with pytest.raises(ConfigError, match=r"perturb repeated labels.*perturb=0\.1"):
            interpolating_network(x, y, 50)
        net = interpolating_network(x, y, 500, perturb=0.2)
        assert net.rho > 0.05
        np.testing.assert_allclose(net.apply(x), net.targets, atol=1e-9)
        away = np.linalg.norm(net.targets - y, axis=1)
        np.testing.assert_allclose(away, [0, 0, 0.2, 0.2, 0], atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(net.targets, axis=1), 1, atol=1e-12)
        again = separated_labels(x, y, 0.2)
        np.testing.assert_array_equal(again, net.targets)
        other = separated_labels(x, y, 0.2, seed=1)
        assert np.abs(other - again).max() > 0.01

    def test_a_label_on_a_sample_is_moved_too(self):
        x, y = np.eye(3)[:2], np.eye(3)[[2, 0]]
        net = interpolating_network(x, y, 40, perturb=0.3)
        assert np.linalg.norm(net.targets[1] - y[1]) == pytest.approx(0.3)
        np.testing.assert_allclose(net.apply(x), net.targets, atol=1e-9)

    @pytest.mark.parametrize(
        ("x", "y", "units", "words"),
        [
            (np.eye(2), -np.eye(2), 10, "at least 3 dimensions"),
            (2 * np.eye(3), -np.eye(3), 10, "inputs have norms from 2 to 2"),
            (np.eye(3), -0.5 * np.eye(3), 10, "labels have norms"),
            (np.eye(3), -np.eye(3)[:2], 10, "equal shape"),
            (np.eye(3), -np.eye(3), 2, "from 3 up"),
            (np.eye(3), -np.eye(3), True, "whole number"),
            (np.eye(3)[[0, 0]], -np.eye(3)[:2], 10, "drop repeated samples"),
        ],
    )
    def test_what_cannot_be_walked(self, x, y, units, words):
        with pytest.raises(ConfigError, match=words):
            interpolating_network(x, y, units)

    @pytest.mark.parametrize("distance", [0.0, -0.1, 1.0, float("nan")])
    def test_distances_out_of_range(self, distance):
        with pytest.raises(ConfigError, match=r"\(0, 1\)"):
            separated_labels(np.eye(3), np.eye(3), distance)


def test_minimum_distance_against_all_pairs():
    points = np.random.default_rng(0).normal(size=(20, 4))
    every = np.linalg.norm(points[:, None] - points, axis=2) + 9 * np.eye(20)
    assert minimum_distance(points) == pytest.approx(every.min())
    assert minimum_distance(points[:1]) == np.inf
