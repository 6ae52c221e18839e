"""No Hessian's norm exceeds the bound, and no tangent kernel falls below its own."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import nn

from tests.certificates.systems import (
    MOST_PARAMETERS,
    NORMALISED,
    built,
    hessian_norm,
    inside,
    systems,
)
from theodolite.certificates import certificate, recognise
from theodolite.certificates.bounds import balls_about
from theodolite.core import AffineLayer, ConfigError, SystemBlueprint
from theodolite.theory import (
    cost_bounds,
    extent_of,
    system_bounds,
    system_jacobian,
    system_regularity,
)

QUICK = settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck)
)
MANY = settings(QUICK, max_examples=2000)
SEEDS = st.integers(0, 2**31)
ROUNDING = 1e-9
COSTS = ("cross_entropy", "square", "logistic")


def data_of(plan, samples, seed):
    rng = np.random.default_rng([seed, 1])
    size = 10 ** rng.uniform(-1, 1)
    x = torch.as_tensor(size * rng.normal(size=(samples, *plan.shapes[0])))
    width = plan.shapes[-1][0]
    targets = {
        "cross_entropy": torch.as_tensor(rng.integers(0, width, samples)),
        "square": torch.as_tensor(rng.normal(size=(samples, width))),
        "logistic": torch.as_tensor(rng.choice([-1.0, 1.0], size=(samples, width))),
    }
    return x, targets


def loss_of(cost, x, targets):
    y = targets[cost]

    def loss(run):
        z = run(x)
        if cost == "square":
            return (z - y).square().sum() / (2 * len(x))
        if cost == "logistic":
            return torch.nn.functional.softplus(-y * z).mean()
        return torch.nn.functional.cross_entropy(z, y)

    return loss


def smoothness(plan, x, targets, cost, *, radius=math.inf, network=None):
    balls = None
    if network is not None:
        result = recognise(network, plan.shapes[0])
        balls = balls_about(plan.layers, result.weights, radius)
    bounds = system_bounds(plan, extent_of(x.numpy()), balls)
    norm = float(targets["square"].norm())
    known = cost_bounds(cost, bounds.outputs, target_norm=norm)
    return bounds.smoothness(known.gradient, known.curvature)


def check(plan, samples, cost, seed, radius=math.inf, *, points=1):
    """Look for a Hessian beyond the bound, everywhere or in a ball."""
    assume(plan.parameters <= MOST_PARAMETERS)
    x, targets = data_of(plan, samples, seed)
    network, near = built(plan, seed), math.isfinite(radius)
    known = {"radius": radius, "network": network} if near else {}
    beta = smoothness(plan, x, targets, cost, **known)
    assert near or math.isfinite(beta)
    assume(math.isfinite(beta))
    for place in range(points):
        point = inside(network, radius, [seed, place])
        norm = hessian_norm(network, point, loss_of(cost, x, targets))
        assert norm <= beta * (1 + ROUNDING) + ROUNDING * near, (plan, seed, radius)


def check_kernel(plan, samples, seed):
    x, _ = data_of(plan, samples, seed)
    network = built(plan, seed)
    result = recognise(network, plan.shapes[0])
    jacobian = system_jacobian(plan, result.weights, x.numpy())
    regular = system_regularity(plan, result.weights, x.numpy())
    values = np.linalg.eigvalsh(jacobian @ jacobian.T)
    assert regular.bound <= values[0] + 1e-12 * values[-1], (plan, seed)
    return regular.bound, values


EVERYWHERE = (systems(ways=NORMALISED, biases=False), st.integers(2, 4))
BALLS = (systems(), st.integers(2, 4))


@QUICK
@given(*EVERYWHERE, st.sampled_from(COSTS), SEEDS)
def test_no_hessian_of_a_normalised_system_exceeds_the_bound(plan, samples, cost, seed):
    check(plan, samples, cost, seed)


@QUICK
@given(*BALLS, st.sampled_from(COSTS), SEEDS, st.floats(0.01, 2))
def test_no_hessian_within_a_radius_exceeds_the_bound(
    plan, samples, cost, seed, radius
):
    check(plan, samples, cost, seed, radius)


@settings(QUICK, max_examples=120)
@given(systems(depth=3), st.integers(2, 4), SEEDS)
def test_no_tangent_kernel_falls_below_the_sum_over_layers(plan, samples, seed):
    check_kernel(plan, samples, seed)


@pytest.mark.slow
@MANY
@given(*EVERYWHERE, st.sampled_from(COSTS), SEEDS)
def test_thousands_of_normalised_systems_keep_the_bound(plan, samples, cost, seed):
    check(plan, samples, cost, seed, points=3)


@pytest.mark.slow
@MANY
@given(*BALLS, st.sampled_from(COSTS), SEEDS, st.floats(0.01, 2))
def test_thousands_of_systems_within_a_radius_keep_the_bound(
    plan, samples, cost, seed, radius
):
    check(plan, samples, cost, seed, radius, points=3)


@pytest.mark.slow
@MANY
@given(systems(depth=3), st.integers(2, 4), SEEDS)
def test_thousands_of_tangent_kernels_keep_the_bound(plan, samples, seed):
    check_kernel(plan, samples, seed)


def test_the_bound_of_smoothness_is_reached():
    """One plain layer and the square cost have a constant Hessian, of that norm."""
    plan = SystemBlueprint(inputs=3, layers=(AffineLayer(into=3, out=2),))
    x, targets = data_of(plan, 4, 0)
    network = built(plan, 0)
    norm = hessian_norm(network, inside(network, 1.0, 0), loss_of("square", x, targets))
    beta = smoothness(plan, x, targets, "square", radius=1.0, network=network)
    assert abs(norm / beta - 1) < 1e-9


def test_the_bound_of_the_tangent_kernel_is_reached():
    """One layer is its own tangent kernel."""
    plan = SystemBlueprint(
        inputs=5,
        layers=(AffineLayer(into=5, out=2, parameterisation="weight_norm", bias=True),),
    )
    bound, values = check_kernel(plan, 3, 1)
    assert abs(bound / values[0] - 1) < 1e-9
    assert bound > 0


def test_the_kernel_bound_holds_where_rectifiers_stand_at_their_kink():
    network = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).double()
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    x = torch.eye(4, dtype=torch.float64)[:3]
    result = certificate(network, (x, torch.arange(3)), "cross_entropy")
    assert result.kernel_bound <= result.kernel_smallest + result.kernel_error


def test_a_loss_that_drops_a_class_has_no_known_bounds():
    network = nn.Sequential(nn.Linear(4, 3)).double()
    data = torch.eye(4, dtype=torch.float64)[:3], torch.tensor([0, 2, 2])
    kept = certificate(network, data, nn.CrossEntropyLoss(ignore_index=3))
    with torch.no_grad():
        loss = float(nn.functional.cross_entropy(network(data[0]), data[1]))
    assert kept.loss == pytest.approx(loss, rel=1e-12)
    with pytest.raises(ConfigError, match="no known bounds"):
        certificate(network, data, nn.CrossEntropyLoss(ignore_index=2))


def test_data_too_large_to_square_leaves_an_infinite_constant():
    network = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    x = 1e200 * torch.eye(4, dtype=torch.float64)[:3]
    data = x, torch.arange(3)
    result = certificate(network, data, "cross_entropy", radius=1.0)
    assert (result.smoothness, result.step) == (math.inf, 0.0)


@pytest.mark.parametrize("radius", [None, "1", True])
def test_a_radius_that_is_no_number_is_one_sentence(radius):
    network = nn.Sequential(nn.Linear(4, 3)).double()
    data = torch.eye(4, dtype=torch.float64)[:3], torch.arange(3)
    with pytest.raises(ConfigError, match="radius is"):
        certificate(network, data, "cross_entropy", radius=radius)
