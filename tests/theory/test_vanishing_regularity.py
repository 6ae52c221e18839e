"""The arithmetic of theorem 5.1's proof, and networks that refute its end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from theodolite.core import ConfigError, TheodoliteError
from theodolite.theory import (
    StalledNetwork,
    descent_gain,
    growth_law,
    kernel_exponent,
    kernel_floor,
    longest_path,
    surviving_factor,
    worst_growth,
)


def test_what_is_left_of_products_is_that_of_the_reference():
    assert surviving_factor(1.5, 0.5, 10**6) == pytest.approx(0.2173633, abs=1e-7)
    assert surviving_factor(0.75, 0.5, 10**6) == pytest.approx(1.26e-27, rel=0.01)


@pytest.mark.parametrize("decay", [1.5, 3.0, 8.0])
def test_what_the_proof_sums_is_how_far_a_parameterisation_moves(decay):
    # P' = (1 + w)^-q has the worst path (1 + w)^(q+1) = 1 + (q + 1) C t.
    force, q = 0.7, decay

    def steep(t):
        return (1 + (q + 1) * force * t) ** (-2 * q / (q + 1))

    total = quad(steep, 0, np.inf, limit=200)[0]
    assert_allclose(total, 1 / ((q - 1) * force), rtol=1e-6)
    late = np.log(steep(1e9) / steep(1e8)) / np.log(10)
    assert late == pytest.approx(-kernel_exponent(q), abs=1e-6)
    assert kernel_exponent(q) > 1


def test_growth_follows_its_law_at_the_time_of_the_steps():
    steps = 20_000
    for rate in (0.05, 2.0):
        result = worst_growth(steps, rate, 1.0)[-1]
        assert result / growth_law([steps], rate, 1.0)[0] == pytest.approx(1, abs=1e-3)
    assert worst_growth(steps, 0.05, 1.0)[-1] < 0.5 * growth_law([steps], 1.0, 1.0)[0]


def test_a_step_gains_at_least_what_is_said_and_a_parabola_no_more():
    for curvature, rate in ((4.0, 0.45), (0.5, 1.0), (2.0, 0.9)):
        after = 0.5 * curvature * (1 - rate * curvature) ** 2
        gained = 0.5 * curvature - after
        assert gained == pytest.approx(descent_gain(rate, curvature) * curvature**2)


@pytest.mark.parametrize("gate", ["tanh", "ramp", "bump"])
@pytest.mark.parametrize("layers", [2, 3])
def test_no_output_passes_the_reach_and_some_come_near(gate, layers):
    network = StalledNetwork(layers=layers, gate=gate)
    gates = {
        "tanh": np.tanh,
        "ramp": lambda z: 0.5 * np.clip(z, 0, 1) ** 2 + np.maximum(z - 1, 0),
        "bump": lambda z: np.where(z > 0, np.exp(-1 / np.where(z > 0, z, 1)), 0),
    }
    rng = np.random.default_rng(0)
    drawn = np.append(rng.uniform(-1, 1, (5000, 5)), np.full((1, 5), 0.999), axis=0)
    z = drawn[:, 0]
    for block in range(layers - 1):
        inner, outer = drawn[:, 1 + 2 * block], drawn[:, 2 + 2 * block]
        z = z + 0.9 * outer * gates[gate](0.9 * inner * z)
    assert z.max() < network.reach
    assert z[-1] > network.reach - 0.02
    assert network.infimum == pytest.approx(np.log1p(np.exp(-network.reach)))
    assert network.infimum < network.stall - 0.05


def test_square_costs_stall_at_targets_that_can_be_reached():
    network = StalledNetwork(cost="square", target=1.5)
    assert (network.stall, network.infimum) == (0.25, 0.0)
    assert StalledNetwork(cost="square", target=2.0).infimum > 0.1


def test_the_excess_is_that_of_a_million_steps():
    # The reference: 0.3134452 after a million steps; its rate follows from that alone.
    network = StalledNetwork()
    w, rate = 0.0, 1.0
    for _ in range(20_000):
        z = w / np.sqrt(1 + w * w)
        w += rate / (1 + np.exp(z)) / (1 + w * w) ** 1.5
    result = np.log1p(np.exp(-w / np.sqrt(1 + w * w))) - network.stall
    assert result == pytest.approx(network.excess(rate, 20_000), rel=0.02)


@pytest.mark.parametrize("spectrum", [(1.0, 4.0), (0.3, 1.0), (2.0, 2.0)])
def test_no_path_on_a_bowl_is_longer_than_said(spectrum):
    curvatures = np.array(spectrum)
    here, length = np.array([1.0, -2.0]), 0.0
    excess = 0.5 * float(curvatures @ here**2)
    for _ in range(500):
        step = curvatures * here / curvatures.max()
        here, length = here - step, length + float(np.linalg.norm(step))
    bound = longest_path(excess, 2 * float(curvatures.min()))
    assert 0.2 * bound < length <= bound
    with pytest.raises(ConfigError, match="above its infimum"):
        longest_path(-1.0, 1.0)


def test_kernels_have_their_floor_at_independent_data_alone():
    assert kernel_floor(2 * np.eye(2), 0.0, 4.0) == pytest.approx(1.0)
    with pytest.raises(ConfigError, match="rank below 2"):
        kernel_floor([[1.0, 2.0], [2.0, 4.0]], 1.0)
    with pytest.raises(ConfigError, match="at most as many samples"):
        kernel_floor(np.ones((3, 2)), 1.0)
    with pytest.raises(ConfigError, match="from 0 to below 1"):
        kernel_floor(np.eye(2), 1.0, branches=[1.0])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"layers": 1}, "layers is 1"),
        ({"gate": "relu"}, "relu"),
        ({"scale": 1.0}, "shorter than their skip"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"cost": "square", "target": 0.5}, "nearly reaches"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_networks_outside_of_the_theorem_are_a_sentence(wrong, said):
    with pytest.raises(TheodoliteError, match=said):
        StalledNetwork(**wrong)
