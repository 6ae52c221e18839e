"""Bad arrays and numbers are a sentence: what came, what was wanted."""

from typing import Any

import numpy as np
import pytest

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.theory import (
    interpolating_network,
    minimum_distance,
    relu_gradient,
    relu_hessian,
    sphere_path,
    step_unit,
    weight_norm_bound,
)

PLAN = ShortcutBlueprint(width=3, depth=2, mid="relu")
GOOD = {"weights": np.ones((2, 3, 3)), "x": np.ones((4, 3)), "y": np.zeros((4, 3))}
EYE = np.eye(3)
NAN, INF = float("nan"), float("inf")
pytestmark = pytest.mark.usefixtures("untyped")


def spoilt(array, value):
    array = array.copy()
    array.flat[1] = value
    return array


@pytest.mark.parametrize("function", [relu_gradient, relu_hessian])
class TestNetworks:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"weights": np.ones((1, 3, 3))}, r"\(1, 3, 3\).*wants \(2, 3, 3\)"),
            ({"weights": np.ones((2, 2, 3))}, r"\(2, 2, 3\).*wants \(2, 3, 3\)"),
            ({"weights": np.ones((3, 3))}, r"\(3, 3\).*\(depth, width, width\)"),
            ({"weights": spoilt(GOOD["weights"], NAN)}, "weights holds .* 1 of 18"),
            ({"weights": spoilt(GOOD["weights"], INF)}, "weights holds .* 1 of 18"),
            ({"x": np.ones(3)}, r"x has shape \(3,\).*\(samples, width\)"),
            ({"y": np.ones(3)}, r"y has shape \(3,\).*\(samples, width\)"),
            ({"x": np.ones((1, 3))}, r"\(1, 3\).*\(4, 3\).*equal shape"),
            ({"y": np.ones((1, 3))}, r"\(4, 3\).*\(1, 3\).*equal shape"),
            ({"x": np.ones((0, 3)), "y": np.ones((0, 3))}, r"shape \(0, 3\)"),
            ({"x": np.ones((4, 2)), "y": np.ones((4, 2))}, "width 2.*width 3"),
            ({"x": spoilt(GOOD["x"], NAN)}, "x holds NaN or infinity in 1 of 12"),
            ({"x": spoilt(GOOD["x"], -INF)}, "x holds NaN or infinity in 1 of 12"),
            ({"y": spoilt(GOOD["y"], NAN)}, "y holds NaN or infinity in 1 of 12"),
            ({"y": None}, r"y has shape \(\) and type object"),
            ({"x": [[1.0, 2.0, 3.0], [1.0]]}, "x is a list that makes no array"),
        ],
    )
    def test_refused(self, function, changes, words):
        with pytest.raises(ConfigError, match=words):
            function(PLAN, **{**GOOD, **changes})

    def test_lists_and_whole_numbers_are_arrays(self, function):
        wanted = function(PLAN, **GOOD)
        lists = {name: array.astype(int).tolist() for name, array in GOOD.items()}
        for one, other in zip(function(PLAN, **lists), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


class TestPaths:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"start": 2 * EYE[0]}, "start and end have norms from 1 to 2"),
            ({"end": 0 * EYE[0]}, "start and end have norms from 0 to 1"),
            ({"start": spoilt(EYE[0], NAN)}, "start holds NaN"),
            ({"end": spoilt(EYE[0], INF)}, "end holds NaN or infinity in 1 of 3"),
            ({"end": np.eye(4)[0]}, r"end has shape \(4,\).*\(3,\)"),
            ({"start": EYE[:1]}, r"start has shape \(1, 3\)"),
            (
                {"start": EYE[0, :2], "end": EYE[1, :2], "others": -EYE[:1, :2]},
                "at least 3 dimensions",
            ),
            ({"others": EYE[2]}, r"others has shape \(3,\).*\(points, 3\)"),
            ({"others": np.eye(4)[3:]}, r"others has shape \(1, 4\).*\(points, 3\)"),
            ({"others": 3 * EYE[2:]}, "others have norms from 3 to 3"),
            ({"others": spoilt(EYE[2:], NAN)}, "others holds NaN"),
            ({"radius": 0.0}, r"radius is 0\.0.*\(0, 1\)"),
            ({"radius": -0.1}, r"radius is -0\.1"),
            ({"radius": 1.0}, r"radius is 1\.0"),
            ({"radius": NAN}, "radius is nan"),
            ({"radius": "0.1"}, r"radius is '0\.1'"),
            ({"radius": INF, "others": EYE[:0]}, r"radius is inf.*\(0, inf\)"),
        ],
    )
    def test_refused(self, changes, words):
        good = {"start": EYE[0], "end": EYE[1], "others": EYE[2:], "radius": 0.1}
        sphere_path(**good)
        with pytest.raises(ConfigError, match=words):
            sphere_path(**{**good, **changes})

    @pytest.mark.parametrize("count", [0, -1, 2.0, True, None])
    def test_counts(self, count):
        with pytest.raises(ConfigError, match=f"count is {count}.*from 1 up"):
            sphere_path(EYE[0], EYE[1], EYE[2:], 0.1).steps(count)

    def test_a_lone_sample_reaches_its_antipode(self):
        net = interpolating_network(EYE[:1], -EYE[:1], 20)
        assert net.rho == 2
        np.testing.assert_allclose(net.apply(EYE[:1]), -EYE[:1], atol=1e-12)


class TestInterpolation:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"rho": 0.0}, r"rho is 0\.0.*\(0, inf\)"),
            ({"rho": -1.0}, "rho is -1"),
            ({"rho": NAN}, "rho is nan"),
            ({"rho": INF}, "rho is inf"),
            ({"samples": 0}, "samples is 0.*from 1 up"),
            ({"samples": 2.5}, r"samples is 2\.5"),
            ({"units": 2}, "units for 3 samples is 2.*from 3 up"),
            ({"units": 30.0}, r"units for 3 samples is 30\.0"),
        ],
    )
    def test_bounds(self, changes, words):
        with pytest.raises(ConfigError, match=words):
            weight_norm_bound(**{"rho": 0.5, "samples": 3, "units": 30, **changes})

    @pytest.mark.parametrize(
        ("here", "there", "rho", "words"),
        [
            (EYE[0], EYE[1], 0.0, r"rho is 0\.0"),
            (EYE[0], EYE[1], -0.5, "rho is -0"),
            (EYE[0], EYE[1], NAN, "rho is nan"),
            (EYE[0], np.eye(4)[1], 0.5, r"there has shape \(4,\).*\(3,\)"),
            (EYE[0], EYE, 0.5, r"there has shape \(3, 3\)"),
            (spoilt(EYE[0], NAN), EYE[1], 0.5, "here holds NaN"),
        ],
    )
    def test_steps(self, here, there, rho, words):
        with pytest.raises(ConfigError, match=words):
            step_unit(here, there, rho)

    @pytest.mark.parametrize("method", ["apply", "trajectory"])
    @pytest.mark.parametrize(
        ("x", "words"),
        [
            (EYE[0], r"x has shape \(3,\).*\(samples, 3\)"),
            (np.ones((2, 1)), r"x has shape \(2, 1\).*\(samples, 3\)"),
            (np.eye(4), r"x has shape \(4, 4\)"),
            (spoilt(EYE, NAN), "x holds NaN"),
        ],
    )
    def test_other_samples(self, method, x, words):
        net = interpolating_network(EYE, -EYE, 3)
        with pytest.raises(ConfigError, match=words):
            getattr(net, method)(x)

    @pytest.mark.parametrize(
        ("x", "y", "words"),
        [
            (None, EYE, r"x has shape \(\) and type object"),
            (EYE, None, r"y has shape \(\) and type object"),
            (EYE.astype(str), EYE, "x has shape .* and type <U"),
            (EYE, (1j * EYE), "y has shape .* and type complex"),
            (EYE[0], EYE[1], r"x has shape \(3,\)"),
        ],
    )
    def test_points(self, x, y, words):
        with pytest.raises(ConfigError, match=words):
            interpolating_network(x, y, 30)

    @pytest.mark.parametrize("perturb", ["0.1", [0.1]])
    def test_perturb(self, perturb):
        with pytest.raises(ConfigError, match=r"perturb is .*\(0, 1\)"):
            interpolating_network(EYE, -EYE, 30, perturb=perturb)

    def test_lists_are_arrays(self):
        x: Any = EYE.tolist()
        y: Any = (-EYE).tolist()
        net = interpolating_network(x, y, 30, perturb=0.1)
        wanted = interpolating_network(EYE, -EYE, 30)
        np.testing.assert_array_equal(net.first, wanted.first)
        np.testing.assert_array_equal(net.apply(x), wanted.apply(EYE))


class TestPoints:
    @pytest.mark.parametrize(
        ("points", "words"),
        [
            (spoilt(EYE, NAN), "points holds NaN or infinity in 1 of 9"),
            (spoilt(EYE, INF), "points holds NaN or infinity in 1 of 9"),
            (np.arange(3.0), r"points has shape \(3,\).*\(points, width\)"),
            (None, r"points has shape \(\)"),
        ],
    )
    def test_distances(self, points, words):
        with pytest.raises(ConfigError, match=words):
            minimum_distance(points)

    @pytest.mark.parametrize(
        ("x", "y", "words"),
        [
            (EYE, EYE[:2], r"\(3, 3\).*\(2, 3\).*equal shape"),
            (EYE[:2], EYE, r"\(2, 3\).*\(3, 3\).*equal shape"),
            (EYE, 2 * EYE, "labels have norms from 2 to 2"),
            (EYE, spoilt(EYE, NAN), "y holds NaN"),
        ],
    )
    def test_labels(self, x, y, words):
        with pytest.raises(ConfigError, match=words):
            interpolating_network(x, y, 30, perturb=0.1)
