"""Bad shapes and settings are a sentence: what came, what was wanted.

``test_dtypes`` passes NaN, infinity and wrong types to every public name.
"""

import numpy as np
import pytest

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.theory import (
    hessian_at_zero,
    interpolating_network,
    minimum_distance,
    relu_gradient,
    relu_hessian,
    sphere_path,
    step_unit,
    weight_norm_bound,
)

PLAN = ShortcutBlueprint(width=3, depth=2, mid="relu")
EYE, ONES = np.eye(3), np.ones
NAN, INF = float("nan"), float("inf")
RELU = {"weights": ONES((2, 3, 3)), "x": ONES((4, 3)), "y": np.zeros((4, 3))}
PATH = {"start": EYE[0], "end": EYE[1], "others": EYE[2:], "radius": 0.1}
BOUND = {"rho": 0.5, "samples": 3, "units": 30}
STEP = {"here": EYE[0], "there": EYE[1], "rho": 0.5}
NET = {"x": EYE, "y": -EYE, "units": 30}
SMALL = interpolating_network(EYE, -EYE, 3)
pytestmark = pytest.mark.usefixtures("untyped")

SHAPES_OF_NETWORKS = [
    ({"weights": ONES((1, 3, 3))}, r"\(1, 3, 3\).*wants \(2, 3, 3\)"),
    ({"weights": ONES((2, 2, 3))}, r"\(2, 2, 3\).*wants \(2, 3, 3\)"),
    ({"weights": ONES((3, 3))}, r"\(3, 3\).*\(depth, width, width\)"),
    ({"x": ONES(3)}, r"x has shape \(3,\).*\(samples, width\)"),
    ({"y": ONES(3)}, r"y has shape \(3,\).*\(samples, width\)"),
    ({"x": ONES((1, 3))}, r"\(1, 3\).*\(4, 3\).*equal shape"),
    ({"y": ONES((1, 3))}, r"\(4, 3\).*\(1, 3\).*equal shape"),
    ({"x": ONES((0, 3)), "y": ONES((0, 3))}, r"shape \(0, 3\)"),
    ({"x": ONES((4, 2)), "y": ONES((4, 2))}, "width 2.*width 3"),
]
CASES = [
    (sphere_path, PATH, {"start": 2 * EYE[0]}, "start and end have norms from 1 to 2"),
    (sphere_path, PATH, {"end": 0 * EYE[0]}, "start and end have norms from 0 to 1"),
    (sphere_path, PATH, {"end": np.eye(4)[0]}, r"end has shape \(4,\).*\(3,\)"),
    (sphere_path, PATH, {"start": EYE[:1]}, r"start has shape \(1, 3\)"),
    (
        sphere_path,
        PATH,
        {"start": EYE[0, :2], "end": EYE[1, :2], "others": -EYE[:1, :2]},
        "at least 3 dimensions",
    ),
    (sphere_path, PATH, {"others": EYE[2]}, r"shape \(3,\).*\(points, 3\)"),
    (sphere_path, PATH, {"others": np.eye(4)[3:]}, r"shape \(1, 4\).*\(points, 3\)"),
    (sphere_path, PATH, {"others": 3 * EYE[2:]}, "others have norms from 3 to 3"),
    (sphere_path, PATH, {"radius": 0.0}, r"radius is 0\.0.*\(0, 1\)"),
    (sphere_path, PATH, {"radius": 1.0}, r"radius is 1\.0"),
    (sphere_path, PATH, {"radius": NAN}, "radius is nan"),
    (sphere_path, PATH, {"radius": "0.1"}, r"radius is '0\.1'"),
    (sphere_path, PATH, {"radius": INF, "others": EYE[:0]}, r"radius is inf.*\(0, inf"),
    (weight_norm_bound, BOUND, {"rho": 0.0}, r"rho is 0\.0.*\(0, inf\)"),
    (weight_norm_bound, BOUND, {"rho": NAN}, "rho is nan"),
    (weight_norm_bound, BOUND, {"rho": INF}, "rho is inf"),
    (weight_norm_bound, BOUND, {"samples": 0}, "samples is 0.*from 1 up"),
    (weight_norm_bound, BOUND, {"samples": 2.5}, r"samples is 2\.5"),
    (weight_norm_bound, BOUND, {"units": 2}, "units for 3 samples is 2.*from 3 up"),
    (weight_norm_bound, BOUND, {"units": 30.0}, r"units is 30\.0"),
    (step_unit, STEP, {"rho": -0.5}, "rho is -0"),
    (step_unit, STEP, {"there": np.eye(4)[1]}, r"there has shape \(4,\).*\(3,\)"),
    (step_unit, STEP, {"there": EYE}, r"there has shape \(3, 3\)"),
    (SMALL.apply, {"x": EYE}, {"x": EYE[0]}, r"x has shape \(3,\).*\(samples, 3\)"),
    (SMALL.trajectory, {"x": EYE}, {"x": np.eye(4)}, r"x has shape \(4, 4\)"),
    (SMALL.apply, {"x": EYE}, {"x": NAN * EYE}, "x holds NaN"),
    (interpolating_network, NET, {"x": EYE[0], "y": EYE[1]}, r"x has shape \(3,\)"),
    (
        interpolating_network,
        NET,
        {"perturb": "0.1"},
        r"perturb is .*: pass a number",
    ),
    (
        interpolating_network,
        NET,
        {"perturb": [0.1]},
        r"perturb is .*: pass a number",
    ),
    (interpolating_network, NET, {"y": EYE[:2]}, r"\(3, 3\).*\(2, 3\).*equal shape"),
    (interpolating_network, NET, {"x": EYE[:2]}, r"\(2, 3\).*\(3, 3\).*equal shape"),
    (interpolating_network, NET, {"y": 2 * EYE}, "labels have norms from 2 to 2"),
    (minimum_distance, {}, {"points": np.arange(3.0)}, r"\(3,\).*\(points, width\)"),
]


@pytest.mark.parametrize(("function", "good", "changes", "words"), CASES)
def test_refused(function, good, changes, words):
    if good:
        function(**good)
    with pytest.raises(ConfigError, match=words):
        function(**{**good, **changes})


@pytest.mark.parametrize("function", [relu_gradient, relu_hessian])
@pytest.mark.parametrize(("changes", "words"), SHAPES_OF_NETWORKS)
def test_networks_are_refused(function, changes, words):
    with pytest.raises(ConfigError, match=words):
        function(PLAN, **{**RELU, **changes})


@pytest.mark.parametrize("count", [0, -1, 2.0, True, None])
def test_counts(count):
    with pytest.raises(ConfigError, match=f"count is {count}.*from 1 up"):
        sphere_path(**PATH).steps(count)


def test_a_lone_sample_reaches_its_antipode():
    net = interpolating_network(EYE[:1], -EYE[:1], 20)
    assert net.rho == 2
    np.testing.assert_allclose(net.apply(EYE[:1]), -EYE[:1], atol=1e-12)


def test_data_of_another_width_than_the_network_is_refused():
    with pytest.raises(ConfigError, match="data of width 2 for a network of width 3"):
        hessian_at_zero(PLAN, ONES((4, 2)), ONES((4, 2)))
