"""Every public name of theory takes every real type and computes in float64."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import jaxtyping
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.dtypes import FORMS, RANGES, formed, numbers, spoilt
from theodolite import theory
from theodolite.core import (
    NONLINEARITIES,
    BatchNormLayer,
    ConfigError,
    PathBlueprint,
    ShortcutBlueprint,
    SpinGlassBlueprint,
    normalised_residual,
)
from theodolite.data import load

ONE = ShortcutBlueprint(width=3, depth=2, shortcut=1)
TWO = ShortcutBlueprint(width=3, depth=4, bias=True)
LINEAR = ShortcutBlueprint(width=3, depth=4)
RELU = ShortcutBlueprint(width=3, depth=2, mid="relu")
SHARED = PathBlueprint(inputs=3, width=4, depth=3, unique=2)
GLASS = SpinGlassBlueprint(width=5, mixture={2: 0.5, 3: 0.5})
SYSTEM = normalised_residual(inputs=3, widths=(3, 2))
X, Y = ("x", (5, 3)), ("y", (5, 3))
WEIGHTS = ("weights", (4, 3, 3))
WORDS = ("identity", "relu", "tanh", "symmetric_sigmoid", "silu", "polynomial:1,2")


@dataclass(frozen=True)
class Case:
    """How to call a name: arrays to pass, by name and shape, or unit vectors."""

    call: Any
    arrays: tuple[tuple[str, tuple[int, ...]], ...] = ()
    units: tuple[tuple[str, Any], ...] = ()

    def given(self, dtype):
        drawn = {
            name: numbers(dtype, *shape, seed=place)
            for place, (name, shape) in enumerate(self.arrays)
        }
        return drawn | {
            name: np.eye(4)[rows].astype(dtype) for name, rows in self.units
        }


def both_ways(plan):
    def call(x, y):
        return [
            theory.hessian_at_zero(plan, x, y),
            theory.eigenvalues_at_zero(plan, x, y),
            theory.conditioning_at_zero(plan, x, y),
        ]

    return call


def curves(z):
    found = [theory.activation(word) for word in WORDS]
    return [curve(z) for one in found for curve in (one.value, one.slope)]


def own_activation(z):
    mine = theory.Activation(np.square, lambda z: 2 * z, 0.0, 0.0, 2.0)
    return [mine.value(z), mine.slope(z)]


def toeplitz(a, b):
    spectrum = theory.ToeplitzSpectrum(a, b, units=3)
    return [spectrum.bound, spectrum.largest(), spectrum.index()]


def walked(x, y):
    net = theory.interpolating_network(x, y, 12)
    return [net.first, net.second, net.bias, net.apply(x), net.trajectory(y)]


def own_network(first, second, bias, targets, x):
    path = theory.sphere_path(*np.eye(3)[:2], np.eye(3)[2:], 0.1)
    net = theory.InterpolatingNetwork(
        first=first,
        second=second,
        bias=bias,
        targets=targets,
        rho=1.0,
        paths=(path,),
        steps=np.array([2]),
        bound=1.0,
    )
    return [net.norms, net.max_bias, net.targets, net.apply(x)]


def own_path(start, end):
    arcs = theory.sphere_path(*np.eye(3)[:2], np.eye(3)[2:], 0.1).arcs
    return theory.SpherePath(arcs, start, end, 0).steps(3)


def linear(function):
    def call(weights, x, y):
        return function(LINEAR, weights, theory.moments(x, y))

    return call


def with_moments(xx, yx, yy):
    data = theory.Moments(xx, yx, yy)
    return [data.gap, data.optimal_loss()]


def path_model(weights, x):
    model = theory.PathModel(blueprint=SHARED, weights=weights)
    lines = [model.beta, model.epsilons, model.first_line, model.second_line]
    return [*lines, model.terms(x), model.mean_terms(x), model.approximate_terms(x)]


def own_parts(shallow_gradient, deep_gradient):
    parts = theory.Parts(
        shallow=1.0,
        deep=2.0,
        shallow_gradient=shallow_gradient,
        deep_gradient=deep_gradient,
        degrees=(1, 2),
    )
    return [parts.gradient, parts.norm_force(1.0), parts.scale_force(1.0, skipped=True)]


def two_degrees(shallow, deep, weights):
    scales = np.array([2.0, 3.0])
    loss = theory.TwoDegreeLoss(shallow=shallow, deep=deep, scales=scales)
    return loss.parts(weights)


CASES = {
    "Activation": Case(own_activation, (("z", (7,)),)),
    "GradientSpectrum": Case(
        lambda nodes, weights: theory.GradientSpectrum(nodes, weights, 1.0),
        (("nodes", (5,)), ("weights", (5,))),
    ),
    "HessianParts": Case(
        lambda gauss_newton, residual: (
            theory.HessianParts(gauss_newton, residual, 1.0).whole
        ),
        (("gauss_newton", (4, 4)), ("residual", (4, 4))),
    ),
    "InterpolatingNetwork": Case(
        own_network,
        (
            ("first", (2, 3, 3)),
            ("second", (2, 3, 3)),
            ("bias", (2, 3)),
            ("targets", (4, 3)),
            ("x", (4, 3)),
        ),
    ),
    "Moments": Case(with_moments, (("xx", (3, 3)), ("yx", (3, 3)), ("yy", (3, 3)))),
    "Parts": Case(own_parts, (("shallow_gradient", (3,)), ("deep_gradient", (3,)))),
    "PathModel": Case(path_model, (("weights", (2,)), ("x", (5, 3)))),
    "SpherePath": Case(own_path, (("start", (3,)), ("end", (3,)))),
    "ToeplitzSpectrum": Case(toeplitz, (("a", (3, 3)), ("b", (3, 3)))),
    "TwoDegreeLoss": Case(
        two_degrees, (("shallow", (3,)), ("deep", (3, 3)), ("weights", (3,)))
    ),
    "activation": Case(curves, (("z", (6, 2)),)),
    "conditioning_at_zero": Case(both_ways(TWO), (X, Y)),
    "data_matrix": Case(lambda x, y: theory.data_matrix(TWO, x, y), (X, Y)),
    "eigenvalues_at_zero": Case(both_ways(ONE), (X, Y)),
    "energy_covariance": Case(
        lambda overlap: theory.energy_covariance(GLASS, overlap), (("overlap", (4,)),)
    ),
    "gradient_spectrum": Case(
        lambda hessian, gradient: theory.gradient_spectrum(hessian, gradient),
        (("hessian", (4, 4)), ("gradient", (4,))),
    ),
    "hessian_at_zero": Case(both_ways(LINEAR), (X, Y)),
    "interpolating_network": Case(walked, units=(("x", [0, 1]), ("y", [2, 3]))),
    "linear_gradient": Case(linear(theory.linear_gradient), (WEIGHTS, X, Y)),
    "linear_hessian": Case(linear(theory.linear_hessian), (WEIGHTS, X, Y)),
    "linear_loss": Case(linear(theory.linear_loss), (WEIGHTS, X, Y)),
    "minimum_distance": Case(theory.minimum_distance, (("points", (6, 3)),)),
    "moments": Case(theory.moments, (X, Y)),
    "network_mixture": Case(theory.network_mixture, (("weights", (6,)),)),
    "relu_gradient": Case(
        lambda weights, x, y: theory.relu_gradient(RELU, weights, x, y),
        (("weights", (2, 3, 3)), X, Y),
    ),
    "relu_hessian": Case(
        lambda weights, x, y: theory.relu_hessian(RELU, weights, x, y),
        (("weights", (2, 3, 3)), X, Y),
    ),
    "relu_hessian_parts": Case(
        lambda weights, x, y: theory.relu_hessian_parts(RELU, weights, x, y),
        (("weights", (2, 3, 3)), X, Y),
    ),
    "relu_spectrum_near_zero": Case(
        theory.relu_spectrum_near_zero, (("first_weights", (2, 3, 3)), X, Y)
    ),
    "residual_unit": Case(
        theory.residual_unit,
        (("x", (5, 3)), ("first", (3, 3)), ("second", (3, 3)), ("bias", (3,))),
    ),
    "separated_labels": Case(
        lambda x, y: theory.separated_labels(x, y, 0.1),
        units=(("x", [0, 1]), ("y", [0, 3])),
    ),
    "shifted_singular_density": Case(
        lambda points: theory.shifted_singular_density(points, deviation=0.5),
        (("points", (5,)),),
    ),
    "sphere_path": Case(
        lambda start, end, others: theory.sphere_path(start, end, others, 0.1).steps(4),
        units=(("start", 0), ("end", 1), ("others", [2, 3])),
    ),
    "step_unit": Case(
        lambda here, there: theory.step_unit(here, there, 0.5),
        units=(("here", 0), ("there", 1)),
    ),
    "unit_blocks": Case(lambda x, y: theory.unit_blocks(ONE, x, y), (X, Y)),
}
# What takes no arrays takes numbers: of any width, none of which may wrap around.
COUNTS = {
    "Assumption": lambda n: theory.Assumption(n > 0, f"{n} paths"),
    "Conditioning": lambda n: theory.Conditioning(n, n, n, n),
    "LayerSizes": lambda n: theory.LayerSizes(square=n, mean=n, overlap=n, deviation=n),
    "LengthMoments": lambda n: theory.LengthMoments(mean=n, variance=n),
    "MeanCount": lambda n: theory.MeanCount(log=n, error=n, method="sampling"),
    "MixtureMoments": lambda n: theory.MixtureMoments(first=n, second=n, spread=n),
    "ScaleRange": lambda n: theory.ScaleRange(low=n, high=n, middle=n),
    "configuration_repeats": lambda n: theory.configuration_repeats(n, n, n, n),
    "critical_exponent": lambda n: theory.critical_exponent({n: 1.0}),
    "exponent_gap_limit": lambda n: theory.exponent_gap_limit(n),
    "exponent_of_ratio": lambda n: theory.exponent_of_ratio(n),
    "exponent_slope": lambda n: theory.exponent_slope(n),
    "least_norm_force": lambda n: theory.least_norm_force(n, n - n, shallow=n, deep=n),
    "log_legendre_normaliser": lambda n: theory.log_legendre_normaliser(n, n),
    "log_legendre_sum": lambda n: theory.log_legendre_sum(n, n),
    "log_missing_mass_bound": lambda n: theory.log_missing_mass_bound(n, n, 0.5, 1),
    "log_path_normaliser": lambda n: theory.log_path_normaliser(n, n),
    "log_path_weights": lambda n: theory.log_path_weights(n, n),
    "mean_critical_points": lambda n: (
        theory.mean_critical_points(GLASS, index=n - n, sampling=True, samples=n).log
    ),
    "missing_mass": lambda n: theory.missing_mass(n, n, 0.5, 0.9),
    "mixture_moments": lambda n: theory.mixture_moments({n: 1.0}),
    "path_counts": lambda n: theory.path_counts(n, n),
    "path_length_moments": lambda n: theory.path_length_moments(n, n),
    "path_masses": lambda n: theory.path_masses(n, n, n),
    "path_peak": lambda n: theory.path_peak(n, n),
    "path_weight_slopes": lambda n: theory.path_weight_slopes(n, n),
    "path_weights": lambda n: theory.path_weights(n, n),
    "plain_path_count": lambda n: theory.plain_path_count(n, n),
    "scalar_norm_sizes": lambda n: theory.scalar_norm_sizes(n),
    "scale_for_path_length": lambda n: theory.scale_for_path_length(n, n - 1),
    "column_major": lambda n: theory.column_major([(n, n), (n,)]),
    "commutation": lambda n: theory.commutation(n),
    "weight_norm_bound": lambda n: theory.weight_norm_bound(
        rho=0.5, samples=n, units=n
    ),
}


SIGNS = np.array([1.0, -1.0, 1.0, 1.0])


def flow_of_a_network(inputs):
    flow = theory.NormalisedFlow(inputs=inputs, labels=SIGNS)
    layers = [np.eye(4)[:2], np.ones((1, 2))]
    return [flow.outputs(layers), *flow.speed(0.5, layers), *flow.residuals(1, layers)]


def flow_of_a_line(inputs, direction):
    flow = theory.LinearFlow(inputs=inputs, labels=SIGNS, decay=0.5)
    return [*flow.speed(0.5, direction), flow.rest()]


def shared_output(x):
    return theory.layer_factors([np.eye(3)[:1], np.eye(1)], x)


OUTPUTS = (("outputs", (4,)),)
CASES |= {
    "LinearFlow": Case(flow_of_a_line, (), (("inputs", slice(0, 4)), ("direction", 0))),
    "NormalisedFlow": Case(flow_of_a_network, (("inputs", (4, 4)),)),
    "batch_norm_jacobian": Case(
        lambda batch: theory.batch_norm_jacobian(batch, 0.1), (("batch", (6,)),)
    ),
    "diagonal_solution": Case(
        lambda x: theory.diagonal_solution(x, 4), (), (("x", ([0], [0])),)
    ),
    "frobenius_complexity": Case(
        lambda inputs: theory.frobenius_complexity(inputs, 3), (("inputs", (5, 3)),)
    ),
    "frozen_norm": Case(
        lambda outputs: theory.frozen_norm(0.1, outputs, SIGNS, [0.5, 1.0]), OUTPUTS
    ),
    "layer_factors": Case(shared_output, (("x", (3,)),)),
    "layered_norm": Case(
        lambda outputs: theory.layered_norm(0.1, 2, outputs, SIGNS, [0.5]), OUTPUTS
    ),
    "least_first_layer_gap": Case(
        theory.least_first_layer_gap, (), (("inputs", slice(0, 3)),)
    ),
    "least_norm_classifier": Case(
        lambda inputs: theory.least_norm_classifier(inputs, [1.0, 1.0, 1.0]),
        (),
        (("inputs", slice(0, 3)),),
    ),
    "norm_equilibrium": Case(
        lambda outputs: theory.norm_equilibrium(outputs, SIGNS, 0.5), OUTPUTS
    ),
    "norm_multiplier": Case(
        lambda outputs: theory.norm_multiplier(0.5, outputs, SIGNS), OUTPUTS
    ),
    "ramp_loss": Case(
        lambda margins: theory.ramp_loss(margins, 0.5), (("margins", (5,)),)
    ),
    "transient_time": Case(
        lambda outputs: theory.transient_time(0.01, 2, outputs, np.ones(4)),
        (),
        (("outputs", 0),),
    ),
    "two_layer_complexity": Case(theory.two_layer_complexity, (("inputs", (3, 2)),)),
    "weight_norm_speeds": Case(
        lambda vector, speed: theory.weight_norm_speeds(2.0, vector, speed),
        (("vector", (3,)), ("speed", (3,))),
    ),
}
COUNTS |= {
    "FlowPath": lambda n: theory.FlowPath(n, n, n, (n,), n, None, (n, n)),
    "Kink": lambda n: theory.Kink(n, n, n, n),
    "LayerFactors": lambda n: theory.LayerFactors(output=n, back=(n,), inputs=(n,)),
    "TWO_CLASS_GAP": lambda n: theory.TWO_CLASS_GAP,
    "aligned_norm": lambda n: theory.aligned_norm(float(n) / 2000, 1.4),
    "margin_bound": lambda n: theory.margin_bound(
        0.1, 0.1, gamma=0.5, samples=n, delta=0.1
    ),
    "projection_gap": lambda n: theory.projection_gap(n),
    "shifted_singular_edges": lambda n: theory.shifted_singular_edges(
        deviation=n, shift=n
    ),
    "shifted_singular_shares": lambda n: theory.shifted_singular_shares(
        3, deviation=n, shift=n
    ),
}


def one_layer(inputs, labels):
    layer = theory.EntryDescent(inputs=inputs, labels=labels)
    return [layer.smoothness, layer.loss(np.eye(4)), layer.gradient(np.eye(4))]


def started(weights):
    layer = theory.EntryDescent(inputs=np.eye(3)[:2], labels=np.eye(2))
    return [layer.integrate(weights, [1.0]), layer.guarantee(weights, 0.1, 10)]


CASES |= {
    "EntryDescent": Case(
        one_layer, (), (("inputs", slice(0, 4)), ("labels", slice(0, 4)))
    ),
    "CubeMinimum": Case(started, (("weights", (2, 3)),)),
    "growth_law": Case(
        lambda steps: theory.growth_law(steps, 0.5, 2.0), (), (("steps", 0),)
    ),
    "kernel_floor": Case(
        lambda inputs: theory.kernel_floor(inputs, 1.0), (), (("inputs", slice(0, 3)),)
    ),
}
COUNTS |= {
    "StalledNetwork": lambda n: theory.StalledNetwork(layers=n).infimum,
    "descent_gain": lambda n: theory.descent_gain(n, 0.01),
    "flat_cost_exponent": theory.flat_cost_exponent,
    "kernel_exponent": theory.kernel_exponent,
    "longest_path": lambda n: theory.longest_path(n, n),
    "surviving_factor": lambda n: theory.surviving_factor(1.5, 0.5, n),
    "worst_growth": lambda n: theory.worst_growth(n, n, n, n),
}


def extents(data):
    found = theory.extent_of(data)
    return [found, theory.system_bounds(SYSTEM, found), found.tightened()]


OWN = [
    {"weight": np.arange(9.0).reshape(3, 3)},
    ({"weight": np.eye(3)}, {}, {"weight": np.eye(3)[:2]}),
]
PAIRS = [
    *zip(SYSTEM.layers, OWN, strict=True),
    (BatchNormLayer(features=3), {}),
]


def sized(n):
    return theory.Extent(samples=n, shape=(3,), frobenius=n, entries=n)


def bounded(n):
    bounds = theory.SystemBounds(
        groups=("0",),
        slopes=np.ones(1),
        curvatures=np.ones((1, 1)),
        layers=(),
        outputs=sized(n),
        reasons=(),
    )
    return [bounds.smoothness(float(n), float(n)), bounds.derivative]


CASES |= {
    "centred_norm_derivatives": Case(
        lambda rows: theory.centred_norm_derivatives(rows, 0.5), (("rows", (2, 3)),)
    ),
    "entry_norm_derivatives": Case(
        lambda weights: theory.entry_norm_derivatives(weights, 0.5),
        (("weights", (2, 3)),),
    ),
    "extent_of": Case(extents, (("data", (5, 3)),)),
    "nonlinearity_derivatives": Case(
        lambda z: [theory.nonlinearity_derivatives(one, z) for one in NONLINEARITIES],
        (("z", (2, 3)),),
    ),
    "smoothness_bound": Case(
        lambda data: [
            theory.smoothness_bound(SYSTEM, data, cost)
            for cost in theory.CostName.__args__
        ],
        (("data", (4, 3)),),
    ),
    "input_jacobian": Case(
        lambda z: [theory.input_jacobian(one, own, z) for one, own in PAIRS],
        (("z", (4, 3)),),
    ),
    "layer_value": Case(
        lambda z: [theory.layer_value(one, own, z) for one, own in PAIRS],
        (("z", (4, 3)),),
    ),
    "parameter_jacobian": Case(
        lambda z: [theory.parameter_jacobian(one, own, z) for one, own in PAIRS],
        (("z", (4, 3)),),
    ),
    "system_jacobian": Case(
        lambda data: theory.system_jacobian(SYSTEM, OWN, data), (("data", (4, 3)),)
    ),
    "system_regularity": Case(
        lambda data: theory.system_regularity(SYSTEM, OWN, data), (("data", (4, 3)),)
    ),
    "weight_norm_derivatives": Case(
        lambda weights: theory.weight_norm_derivatives(weights, 0.5),
        (("weights", (2, 3)),),
    ),
}
COUNTS |= {
    "CostBounds": lambda n: theory.CostBounds(
        gradient=n, curvature=n, polyak=n, floor=n
    ),
    "CostName": lambda n: theory.CostName.__args__,
    "Extent": sized,
    "LayerBounds": lambda n: theory.LayerBounds(outputs=sized(n), input_slope=n),
    "NORMALISED_CURVATURE": lambda n: theory.NORMALISED_CURVATURE,
    "NonlinearityBounds": lambda n: theory.NonlinearityBounds(n, n, n, n),
    "ParameterBall": lambda n: theory.ParameterBall(radius=n, weight=n, bias=n),
    "ParameterisationBounds": lambda n: theory.ParameterisationBounds(n, n, n, n),
    "Regularity": lambda n: theory.Regularity(own=n, onward=n, terms=n, notes=()),
    "SystemBounds": bounded,
    "cost_bounds": lambda n: [
        theory.cost_bounds(cost, sized(n), target_norm=n)
        for cost in theory.CostName.__args__
    ],
    "layer_bounds": lambda n: theory.layer_bounds(
        SYSTEM.layers[0], sized(n), theory.ParameterBall(radius=n)
    ),
    "nonlinearity_bounds": lambda n: [
        theory.nonlinearity_bounds(one, n) for one in NONLINEARITIES
    ],
    "parameterisation_bounds": lambda n: theory.parameterisation_bounds(
        SYSTEM.layers[0], theory.ParameterBall(radius=n)
    ),
    "system_bounds": lambda n: theory.system_bounds(SYSTEM, sized(n)),
    "rectified_sharpness": lambda n: theory.rectified_sharpness(n),
    "stability_edge": lambda n: theory.stability_edge(n),
}


def flat(result):
    """Every number of a result, as arrays."""
    if is_dataclass(result):
        parts = [getattr(result, field.name) for field in fields(result)]
        return [array for part in parts for array in flat(part)]
    if isinstance(result, list | tuple):
        return [array for part in result for array in flat(part)]
    return [np.asarray(result)]


@pytest.fixture
def _no_type_checks():
    """Call the functions as they are outside of tests, where types go unchecked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def test_every_public_name_is_swept():
    assert sorted([*CASES, *COUNTS]) == sorted(theory.__all__)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", RANGES)
def test_numbers_are_the_same_in_every_type(name, dtype, request):
    case = CASES[name]
    if name[0].isupper():  # fields say what is held, which is less than what is taken
        request.getfixturevalue("_no_type_checks")
    given = case.given(dtype)
    wanted = flat(
        case.call(**{key: value.astype(float) for key, value in given.items()})
    )
    for form in FORMS:
        came = {key: formed(value, form) for key, value in given.items()}
        found = flat(case.call(**came))
        assert [part.dtype for part in found] == [part.dtype for part in wanted]
        for one, other in zip(found, wanted, strict=True):
            assert_array_equal(one, other)


@pytest.mark.usefixtures("_no_type_checks")
@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint64])
def test_counts_do_not_wrap(name, dtype):
    for one, other in zip(
        flat(COUNTS[name](dtype(20))), flat(COUNTS[name](20)), strict=True
    ):
        assert_array_equal(one, other)


@pytest.mark.usefixtures("_no_type_checks")
def test_counts_inside_results_do_not_wrap():
    found = theory.gradient_spectrum(np.diag([1.0, 3.0]), np.ones(2))
    assert found.change(np.float16(0.25), np.uint8(200)) == found.change(0.25, 200)
    path = theory.sphere_path(*np.eye(3)[:2], np.eye(3)[2:], 0.1)
    assert len(path.steps(np.uint8(255))) == 256
    narrow = theory.ToeplitzSpectrum([[1.0]], [[2.0]], np.uint8(200))
    assert narrow.size == 200
    wide = theory.interpolating_network(np.eye(3)[:1], -np.eye(3)[:1], np.uint8(255))
    assert wide.units == 255


@pytest.mark.usefixtures("_no_type_checks")
@pytest.mark.parametrize("name", CASES)
def test_what_is_no_number_is_a_sentence(name):
    case = CASES[name]
    given = case.given("float64")
    for argument, array in given.items():
        for what, bad in spoilt(array).items():
            if name in ("Activation", "activation") and what in ("NaN", "infinity"):
                continue
            with pytest.raises(ConfigError) as error:
                case.call(**{**given, argument: bad})
            text = str(error.value)
            assert text.startswith(argument), (what, text)
            assert "\n" not in text
            assert not text.endswith(".")


@pytest.mark.usefixtures("_no_type_checks")
def test_activations_let_nan_through():
    found = theory.activation("tanh").value([np.nan, np.inf])
    assert_array_equal(found, [np.nan, 1.0])


def test_moments_of_our_own_digits():
    pixels = load("mnist5k").inputs.reshape(5000, -1)
    found = theory.moments(pixels, pixels)
    wanted = pixels.astype(float).T @ pixels.astype(float) / 5000
    assert_allclose(found.xx, wanted, rtol=1e-13)
    assert found.xx.max() > 20_000  # bytes would stop at 255
