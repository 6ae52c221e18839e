"""Flows on the sphere: known limits, invariants, kinks, and what is refused."""

import numpy as np
import pytest

from theodolite.core import ConfigError
from theodolite.theory import (
    NormalisedFlow,
    aligned_norm,
    frozen_norm,
    layered_norm,
    norm_equilibrium,
    norm_multiplier,
    transient_time,
)

F, Y = [0.5, 0.3, -0.4, 0.2], [1, 1, -1, 1]
UNIT = [np.array([[np.cos(1.4), np.sin(1.4)]]), np.ones((1, 1))]


@pytest.fixture
def network():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(5, 3))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    flow = NormalisedFlow(inputs=inputs, labels=np.sign(rng.normal(size=5)), decay=0.05)
    weights = [rng.normal(size=shape) for shape in ((6, 3), (4, 6), (1, 4))]
    return flow, [w / np.linalg.norm(w) for w in weights]


def objective(flow, scale, weights):
    loss = scale * flow.outputs(weights) - flow.labels
    return loss @ loss + flow.decay * scale**2


def test_the_speed_is_the_gradient_on_the_sphere(network):
    flow, weights = network
    rho, moved = flow.speed(2.0, weights)
    step = 1e-6
    up, down = (objective(flow, 2.0 + s * step, weights) for s in (1, -1))
    assert rho == pytest.approx(-(up - down) / (2 * step), rel=1e-7)
    rng = np.random.default_rng(1)
    for k, w in enumerate(weights):
        along = rng.normal(size=w.shape)
        along -= w * np.sum(w * along)
        sides = []
        for sign in (1, -1):
            there = [*weights]
            there[k] = w + sign * step * along
            sides.append(objective(flow, 2.0, there))
        slope = (sides[0] - sides[1]) / (2 * step)
        assert np.sum(moved[k] * along) == pytest.approx(-slope, abs=1e-7)
        assert np.sum(moved[k] * w) == pytest.approx(0, abs=1e-13)


def test_the_objective_falls_and_layers_stay_on_the_sphere(network):
    flow, weights = network
    path = flow.integrate(0.01, weights, [0.02, 0.05])
    assert all(np.linalg.norm(w) == pytest.approx(1, abs=1e-14) for w in path.weights)
    assert objective(flow, path.end[1], path.weights) < objective(flow, 0.01, weights)


@pytest.mark.parametrize("start", [0.3, 3.0])
def test_one_unit_keeps_its_invariant_from_both_sides(start):
    flow = NormalisedFlow(inputs=[[1.0, 0.0]], labels=[1.0])
    path = flow.integrate(start, UNIT, np.linspace(0.1, 30, 50))
    kept = path.scales**2 + 2 * np.log(np.sqrt(1 - path.outputs[:, 0] ** 2))
    np.testing.assert_allclose(kept, start**2 + 2 * np.log(np.sin(1.4)), atol=1e-7)
    if start < 1:
        assert path.scales[-1] == pytest.approx(aligned_norm(start, 1.4), abs=1e-8)


def test_known_ends_and_peaks():
    flow = NormalisedFlow(inputs=[[1.0, 0.0]], labels=[1.0], decay=0.01)
    path = flow.integrate(0.01, UNIT, np.linspace(0.002, 6, 3000))
    assert path.scales.max() == pytest.approx(1.132375773, abs=1e-7)
    assert flow.integrate(0.01, UNIT, [800.0]).scales[-1] == pytest.approx(
        0.9900990099, abs=1e-9
    )
    angle = np.arccos(1 / aligned_norm(0.01, 1.4))
    assert angle == pytest.approx(0.5283504534, abs=1e-9)


def test_closed_forms_are_those_of_the_reference():
    assert norm_equilibrium(F, Y) == pytest.approx(2.592592593, abs=1e-9)
    assert norm_multiplier(2.1875, F, Y) == pytest.approx(0.1 * 2.1875**2)
    np.testing.assert_allclose(
        frozen_norm(0.01, F, Y, [1, 5], 0.1), [1.582073778, 2.183881959], atol=1e-9
    )
    assert layered_norm(0.01, 4, F, Y, [2.0]) == pytest.approx(2.566980657, abs=1e-9)
    large = [1e9 * f for f in F]  # at rest at once, and stiff from there on
    assert layered_norm(0.1, 2, large, Y, [0.5, 1.0]) == pytest.approx(
        norm_equilibrium(large, Y), rel=1e-10
    )
    ordered = layered_norm(0.01, 3, F, Y, [2.0, 1.0])
    assert ordered[0] > ordered[1]


@pytest.mark.parametrize(
    ("start", "layers", "time"),
    [(0.1, 2, 0.574), (0.1, 8, 0.331), (0.01, 6, 1.922), (0.01, 8, 1.896)],
)
def test_transients_are_those_of_the_reference(start, layers, time):
    result = transient_time(start, layers, F, Y)
    assert result == pytest.approx(time, abs=6e-4)
    half = layered_norm(start, layers, F, Y, [result])[0]
    assert half == pytest.approx(norm_equilibrium(F, Y) / 2, rel=1e-8)


def test_a_kink_is_found_where_both_sides_push_towards_it():
    # Active, the unit is turned off this sample; inactive, others turn it on again.
    inputs = np.array([[1.0, 0.0], [0.6, 0.8]])
    flow = NormalisedFlow(inputs=inputs, labels=[1.0, -1.0], decay=0.05)
    turn = -0.3
    start = [np.array([[np.cos(turn), np.sin(turn)]]), np.ones((1, 1))]
    with pytest.raises(ConfigError, match="slides along a kink of unit 0 from time"):
        flow.integrate(0.01, start, [50.0])
    path = flow.integrate(0.01, start, [50.0], until_kink=True)
    assert path.kink is not None
    assert (path.kink.sample, path.kink.unit) == (1, 0)
    z = flow.preactivations(path.weights)[0]
    assert abs(z[1, 0]) < 1e-9
    assert flow.residuals(path.end[1], path.weights)[0] > 0


def test_shares_at_a_kink_cancel_what_one_side_leaves():
    inputs = np.array([[1.0, 0.0], [0.6, 0.8]])
    flow = NormalisedFlow(inputs=inputs, labels=[1.0, -1.0])
    on_kink = [np.array([[0.8, -0.6]]), np.ones((1, 1))]
    smooth, clarke = (
        flow.residuals(0.9, on_kink, near=near)[0] for near in (0.0, 1e-6)
    )
    assert smooth > 0.1
    assert clarke == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: norm_equilibrium([0.0], [1]), "all outputs are zero"),
        (lambda: layered_norm(-1.0, 2, F, Y, [1.0]), "positive"),
        (lambda: transient_time(0.1, 2, F, Y, share=2.0), "share"),
        (lambda: transient_time(5.0, 2, F, Y), "share"),
        (lambda: aligned_norm(0.01, 2.0), "right angle"),
        (lambda: NormalisedFlow(inputs=[[1.0]], labels=[2.0]), "1 or -1"),
        (lambda: NormalisedFlow(inputs=[[1.0]], labels=[1.0, 1.0]), "labels"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, match):
    with pytest.raises(ConfigError, match=match):
        call()


def test_bad_starts_and_times_are_refused(network):
    flow, weights = network
    with pytest.raises(ConfigError, match="do not rise"):
        flow.integrate(0.1, weights, [1.0, 0.5])
    with pytest.raises(ConfigError, match="is zero"):
        flow.integrate(0.1, [0 * w for w in weights], [1.0])
